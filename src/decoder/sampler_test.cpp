#include "decoder/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "base/expect_error.h"
#include "decoder/stop_text.h"

namespace halftone {
namespace {

constexpr SamplingOptions kPlain = {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0};

std::map<int64_t, int> draws(SamplingOptions options, const std::vector<float>& logits, int count,
                             const std::vector<int64_t>& before = {}) {
  Sampler sampler(options);
  std::map<int64_t, int> counts;
  for (int i = 0; i < count; ++i) ++counts[sampler.draw(logits, before)];
  return counts;
}

TEST(Sampler, TemperatureZeroTakesTheBest) {
  EXPECT_EQ(draws({.temperature = 0}, {1, 5, 3, 5}, 10), (std::map<int64_t, int>{{1, 10}}))
      << "the first of equals";
}

TEST(Sampler, DrawsInProportion) {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.2f)};
  const auto counts = draws(kPlain, logits, 20000);
  // Three standard deviations of the largest share.
  const double slack = 3 * std::sqrt(0.25 * 20000);
  EXPECT_NEAR(counts.at(0), 10000, slack);
  EXPECT_NEAR(counts.at(1), 6000, slack);
  EXPECT_NEAR(counts.at(2), 4000, slack);
}

TEST(Sampler, TemperatureSharpens) {
  SamplingOptions options = kPlain;
  options.temperature = 0.5;  // shares become 0.25 : 0.09 : 0.04
  const auto counts = draws(options, {std::log(0.5f), std::log(0.3f), std::log(0.2f)}, 20000);
  EXPECT_NEAR(counts.at(0), 20000 * 0.25 / 0.38, 250);
}

TEST(Sampler, CutsWhatIsImprobable) {
  const std::vector<float> logits = {std::log(0.4f), std::log(0.3f), std::log(0.2f), std::log(0.1f)};
  SamplingOptions options = kPlain;
  options.top_k = 2;
  EXPECT_EQ(draws(options, logits, 2000).size(), 2u);
  options = kPlain;
  options.top_p = 0.65;
  EXPECT_EQ(draws(options, logits, 2000).size(), 2u) << "0.4 is not enough, 0.4 + 0.3 is";
  options = kPlain;
  options.min_p = 0.4;
  EXPECT_EQ(draws(options, logits, 2000).size(), 3u) << "at least 0.16";
  options.top_k = 1;
  EXPECT_EQ(draws(options, logits, 2000), (std::map<int64_t, int>{{0, 2000}}));
}

TEST(Sampler, PenalizesRepetition) {
  SamplingOptions options = {.temperature = 0, .repeat_penalty = 2};
  EXPECT_EQ(draws(options, {3, 2, -1}, 1, {0, 0, 0}), (std::map<int64_t, int>{{1, 1}}))
      << "3 / 2 < 2, counted once";
  EXPECT_EQ(draws(options, {-1, -1.5}, 1, {0}), (std::map<int64_t, int>{{1, 1}})) << "-1 · 2 < -1.5";
  options.repeat_last = 1;
  EXPECT_EQ(draws(options, {3, 2, -1}, 1, {0, 2}), (std::map<int64_t, int>{{0, 1}})) << "too long ago";
}

TEST(Sampler, SameSeedSameTokens) {
  const std::vector<float> logits(100, 0.0f);
  SamplingOptions options = kPlain;
  options.seed = 7;
  Sampler first(options), second(options);
  options.seed = 8;
  Sampler other(options);
  int same = 0;
  for (int i = 0; i < 200; ++i) {
    const int64_t token = first.draw(logits, {});
    EXPECT_EQ(second.draw(logits, {}), token);
    same += other.draw(logits, {}) == token ? 1 : 0;
  }
  EXPECT_LT(same, 20) << "another seed";
}

TEST(Sampler, RefusesWhatMakesNoSense) {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  Sampler sampler(kPlain);
  const std::vector<float> broken = {1, nan}, nothing = {-infinity, -infinity};
  expect_error(ErrorCode::kInvalidArgument, {"NaN"}, [&] { sampler.draw(broken, {}); });
  expect_error(ErrorCode::kInvalidArgument, {"no token"}, [&] { sampler.draw(nothing, {}); });
  expect_error(ErrorCode::kInvalidArgument, {"no token"}, [&] { sampler.draw({}, {}); });
  const std::pair<SamplingOptions, const char*> wrong[] = {{{.temperature = -1}, "temperature"},
                                                           {{.temperature = nan}, "temperature"},
                                                           {{.top_k = -1}, "top_k"},
                                                           {{.top_p = 0}, "top_p"},
                                                           {{.top_p = 1.5}, "top_p"},
                                                           {{.min_p = -0.1}, "min_p"},
                                                           {{.repeat_penalty = 0}, "repeat_penalty"},
                                                           {{.repeat_last = -1}, "repeat_last"}};
  for (const auto& [options, name] : wrong)
    expect_error(ErrorCode::kInvalidArgument, {name}, [&, &options = options] { Sampler{options}; });
}

TEST(LogProbability, IsThatOfSoftmax) {
  const std::vector<float> logits = {1000, 1001, 999};
  const double sum = std::exp(-1.0) + 1 + std::exp(-2.0);
  EXPECT_NEAR(log_probability(logits, 1), -std::log(sum), 1e-6);
  EXPECT_NEAR(log_probability(logits, 2), -2 - std::log(sum), 1e-6);
}

std::string through(const std::vector<std::string>& stops, const std::vector<std::string>& pieces) {
  StopText stop(stops);
  std::string shown;
  for (const std::string& piece : pieces) shown += stop.push(piece);
  return shown + stop.finish();
}

TEST(StopText, EndsTheTextWhereverThePiecesEnd) {
  EXPECT_EQ(through({"STOP"}, {"a S", "TO", "P b"}), "a ");
  EXPECT_EQ(through({"STOP"}, {"a STO"}), "a STO") << "it did not come";
  EXPECT_EQ(through({"STOP"}, {"SS", "TO", "STOP", "x"}), "SSTO");
  EXPECT_EQ(through({"aab", "b"}, {"a", "a", "a", "b"}), "a") << "the one that begins first";
  EXPECT_EQ(through({}, {"a", "b"}), "ab");
  expect_error(ErrorCode::kInvalidArgument, {"empty"}, [] { StopText({""}); });
}

TEST(StopText, HoldsBackOnlyWhatCouldBeAStop) {
  StopText stop({"\n\nUser:"});
  EXPECT_EQ(stop.push("Hello"), "Hello");
  EXPECT_EQ(stop.push(" there\n"), " there");
  EXPECT_EQ(stop.push("x"), "\nx");
  EXPECT_FALSE(stop.found());
  EXPECT_EQ(stop.push("\n\nUser: hi"), "");
  EXPECT_TRUE(stop.found());
  EXPECT_EQ(stop.push("more") + stop.finish(), "");
}

}  // namespace
}  // namespace halftone
