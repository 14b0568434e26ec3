#include "halftone/tune/measure.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <random>
#include <stdexcept>
#include <thread>

namespace halftone {
namespace {

using testing::HasSubstr;

/// A clock that only candidates move: what a run costs is what it adds.
class FakeTime {
 public:
  double now = 0;
  std::function<double()> clock() {
    return [this] { return now; };
  }
  TimedCandidate timed_candidate(std::string name, std::function<double()> milliseconds) {
    TimedCandidate made;
    made.name = std::move(name);
    made.run = [this, milliseconds] { now += milliseconds() * 1e-3; };
    return made;
  }
  TimedCandidate steady(std::string name, double milliseconds) {
    return timed_candidate(std::move(name), [milliseconds] { return milliseconds; });
  }
};

TEST(MedianInterval, IsThatOfOrderStatistics) {
  // P(B < 1) = 1/64 for n = 6: the extremes hold the median with 96.9 %; five values cannot say 95 %.
  const Interval six = median_interval({5, 3, 1, 6, 2, 4}, 0.95);
  EXPECT_EQ(six.low, 1);
  EXPECT_EQ(six.high, 6);
  EXPECT_TRUE(std::isinf(median_interval({1, 2, 3, 4, 5}, 0.95).high));
  // n = 20: P(B < 6) = 0.0207, P(B < 7) = 0.0577 > 0.025, so ranks 6 and 15.
  std::vector<double> twenty;
  for (int i = 1; i <= 20; ++i) twenty.push_back(i);
  EXPECT_EQ(median_interval(twenty, 0.95).low, 6);
  EXPECT_EQ(median_interval(twenty, 0.95).high, 15);
}

TEST(MedianInterval, HoldsTheMedianAsOftenAsItSays) {
  std::mt19937 generator(1);
  // Skewed, as times are. Its median is ln 2.
  std::exponential_distribution<double> draw(1);
  for (const int count : {8, 50, 700}) {
    int held = 0;
    constexpr int kTrials = 1000;
    for (int trial = 0; trial < kTrials; ++trial) {
      std::vector<double> values(count);
      for (double& value : values) value = draw(generator);
      const Interval interval = median_interval(values, 0.95);
      held += interval.low <= std::log(2.0) && std::log(2.0) <= interval.high;
    }
    EXPECT_GE(held, 930) << count;
  }
}

TEST(Quantile, IsTheNearestRank) {
  EXPECT_EQ(quantile({3, 1, 2}, 0.5), 2);
  EXPECT_EQ(quantile({3, 1, 2}, 0), 1);
  EXPECT_EQ(quantile({3, 1, 2}, 1), 3);
  EXPECT_EQ(quantile({7}, 0.9), 7);
}

TEST(Measure, FindsTheLeaderInSpiteOfAMachineThatSlowsDown) {
  FakeTime time;
  std::mt19937 generator(2);
  std::normal_distribution<double> noise(1, 0.02);
  // The machine's mood swings by a factor of three, slowly: the ratio of two candidates does not notice.
  const auto mood = [&] { return 2 + std::sin(time.now * 0.05); };
  MeasureOptions options;
  options.clock = time.clock();
  options.seconds = 1000;
  options.confidence = 0.01;
  const auto result = measure({time.timed_candidate("slow", [&] { return 104 * mood() * noise(generator); }),
                               time.timed_candidate("fast", [&] { return 100 * mood() * noise(generator); })},
                              options);
  EXPECT_EQ(result.leader, 1U);
  EXPECT_TRUE(result.decided);
  EXPECT_NEAR(result.rows[0].relative, 1.04, 0.04);
  EXPECT_EQ(result.rows[1].relative, 1);
  EXPECT_GT(result.rows[0].relative_interval.low, 1);
}

TEST(Measure, StopsWhenTheConfidenceIsReached) {
  FakeTime time;
  MeasureOptions options;
  options.clock = time.clock();
  options.seconds = 1e6;
  options.confidence = 0.01;
  const auto result = measure({time.steady("a", 100), time.steady("b", 100)}, options);
  EXPECT_TRUE(result.decided);
  EXPECT_EQ(result.rounds, options.min_rounds);
  EXPECT_EQ(result.rows[0].times.size(), 6U);
  EXPECT_NEAR(result.rows[0].median, 100, 1e-6);
}

TEST(Measure, StopsWithTheBudgetAndSaysThatNothingIsDecided) {
  FakeTime time;
  std::mt19937 generator(3);
  std::lognormal_distribution<double> wild(0, 1);
  MeasureOptions options;
  options.clock = time.clock();
  options.seconds = 10;
  options.confidence = 1e-4;
  const auto result = measure({time.timed_candidate("a", [&] { return 100 * wild(generator); }),
                               time.timed_candidate("b", [&] { return 100 * wild(generator); })},
                              options);
  EXPECT_FALSE(result.decided);
  EXPECT_GE(result.seconds, 10);
  EXPECT_LT(result.seconds, 20);
}

TEST(Measure, LeastRoundsComeBeforeTheBudget) {
  FakeTime time;
  MeasureOptions options;
  options.clock = time.clock();
  options.seconds = 0;
  const auto result = measure({time.steady("a", 700)}, options);
  EXPECT_EQ(result.rounds, 6);
}

TEST(Measure, HopelessContestantsLeaveEarly) {
  FakeTime time;
  std::mt19937 generator(4);
  std::normal_distribution<double> noise(1, 0.05);
  MeasureOptions options;
  options.clock = time.clock();
  options.seconds = 30;
  options.drop_ratio = 1.3;
  auto baseline = time.timed_candidate("baseline", [&] { return 1000 * noise(generator); });
  baseline.keep = true;
  const auto result =
      measure({time.timed_candidate("fast", [&] { return 100 * noise(generator); }),
               time.timed_candidate("near", [&] { return 110 * noise(generator); }),
               time.timed_candidate("slower", [&] { return 200 * noise(generator); }),
               time.timed_candidate("hopeless", [&] { return 1000 * noise(generator); }), baseline},
              options);
  EXPECT_EQ(result.rows[3].times.size(), 3U);  // ten times as slow: three rounds say it
  EXPECT_THAT(result.rows[3].reason, HasSubstr("times the time of fast after 3 rounds"));
  EXPECT_EQ(result.rows[2].times.size(), 6U);
  EXPECT_EQ(result.rows[4].times.size(), 6U);  // kept for the comparison, not for longer
  EXPECT_GT(result.rows[0].times.size(), 50U);
  EXPECT_EQ(result.rows[0].times.size(), result.rows[1].times.size());
  EXPECT_EQ(result.rows[1].reason, "");
  for (const MeasuredTime& row : result.rows) EXPECT_FALSE(row.failed) << row.name;
  EXPECT_NEAR(paired_ratio(result.rows[3], result.rows[0]), 10, 2);
}

TEST(Measure, BriefContestantsNeverLead) {
  FakeTime time;
  MeasureOptions options;
  options.clock = time.clock();
  options.seconds = 20;
  auto wrong = time.steady("wrong", 1);
  wrong.brief = true;
  const auto result = measure({wrong, time.steady("right", 100)}, options);
  EXPECT_EQ(result.leader, 1U);
  EXPECT_EQ(result.rows[0].times.size(), 6U);
  EXPECT_NEAR(result.rows[0].relative, 0.01, 1e-6);
  EXPECT_GT(result.rows[1].times.size(), 50U);
}

TEST(Measure, WrongAnswersAreNotTimed) {
  FakeTime time;
  MeasureOptions options;
  options.clock = time.clock();
  auto wrong = time.steady("wrong", 1);
  int runs = 0;
  wrong.run = [&] { ++runs; };
  wrong.check = [] { return "cosine 0.3"; };
  const auto result = measure({wrong, time.steady("right", 1)}, options);
  EXPECT_EQ(runs, 0);
  EXPECT_TRUE(result.rows[0].failed);
  EXPECT_EQ(result.rows[0].reason, "cosine 0.3");
  EXPECT_EQ(result.leader, 1U);
}

TEST(Measure, OneThatThrowsLeavesAndTheOthersGoOn) {
  FakeTime time;
  MeasureOptions options;
  options.clock = time.clock();
  options.seconds = 5;
  int left = 6;
  auto failing = time.timed_candidate("failing", [&] {
    if (--left == 0) throw std::runtime_error("out of something");
    return 100.0;
  });
  const auto result = measure({failing, time.steady("fine", 100)}, options);
  EXPECT_TRUE(result.rows[0].failed);
  EXPECT_EQ(result.rows[0].reason, "out of something");
  EXPECT_FALSE(result.rows[1].failed);
  EXPECT_EQ(result.leader, 1U);
  const auto none = measure({failing}, options);
  left = 1;
  EXPECT_TRUE(measure({failing}, options).rows[0].failed);
  EXPECT_FALSE(none.rows[0].failed);
}

TEST(Measure, PreparingIsNotTimedAndComesBeforeEveryRun) {
  FakeTime time;
  MeasureOptions options;
  options.clock = time.clock();
  int prepared = 0, runs = 0;
  auto timed_candidate = time.timed_candidate("a", [&] {
    ++runs;
    return 100.0;
  });
  timed_candidate.prepare = [&] {
    ++prepared;
    time.now += 5;
  };
  const auto result = measure({timed_candidate}, options);
  EXPECT_NEAR(result.rows[0].median, 100, 1e-6);
  EXPECT_EQ(prepared, runs);
}

TEST(Measure, EveryRoundBeginsWithTheNextOne) {
  FakeTime time;
  MeasureOptions options;
  options.clock = time.clock();
  options.seconds = 0;
  options.min_rounds = 4;
  std::string order;
  const auto named = [&](char letter) {
    return time.timed_candidate(std::string(1, letter), [&order, letter] {
      order += letter;
      return 100.0;
    });
  };
  measure({named('a'), named('b'), named('c')}, options);
  EXPECT_EQ(order.substr(order.size() - 12), "abcbcacababc");
}

TEST(Measure, ShortRunsAreRepeatedAndTheMeanCounts) {
  FakeTime time;
  MeasureOptions options;
  options.clock = time.clock();
  options.seconds = 0;
  int runs = 0;
  auto timed_candidate = time.timed_candidate("a", [&] {
    ++runs;
    return runs % 2 == 0 ? 0.05 : 0.15;
  });
  const auto result = measure({timed_candidate}, options);
  EXPECT_NEAR(result.rows[0].median, 0.1, 0.01);
  EXPECT_GT(runs, 6 * 10);
}

TEST(Measure, ReportsProgress) {
  FakeTime time;
  MeasureOptions options;
  options.clock = time.clock();
  options.seconds = 3;
  std::vector<double> shares;
  options.progress = [&](double share) { shares.push_back(share); };
  measure({time.steady("a", 100)}, options);
  ASSERT_FALSE(shares.empty());
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_NEAR(shares.back(), 1, 0.1);
}

/// A machine that another program uses in the turns that `busy` names.
MachineWatch watch_of(std::function<bool()> busy) {
  return [busy = std::move(busy)] { return busy; };
}

TEST(Measure, ADisturbedTurnIsMadeAgain) {
  FakeTime time;
  MeasureOptions options;
  options.clock = time.clock();
  options.seconds = 0;
  bool busy = false;
  int turns = 0;
  options.watch = [&] {
    busy = ++turns % 3 == 0;
    return [&] { return busy; };
  };
  const auto result = measure({time.timed_candidate("a", [&] { return busy ? 5000.0 : 100.0; })}, options);
  EXPECT_EQ(result.disturbed, 0);
  EXPECT_EQ(result.rounds, 6);
  for (const double each : result.rows[0].times) EXPECT_NEAR(each, 100, 1e-6);
}

// Beside programs that are always busy some turns lie between two of their time slices.
TEST(Measure, ShortTurnsAreTriedMoreOften) {
  FakeTime time;
  MeasureOptions options;
  options.clock = time.clock();
  options.seconds = 0;
  bool busy = false;
  int turns = 0;
  options.watch = [&] {
    busy = ++turns % 10 != 0;
    return [&] { return busy; };
  };
  const auto cost = [&](double ms) { return [&busy, ms] { return busy ? 50 * ms : ms; }; };
  const auto result =
      measure({time.timed_candidate("a", cost(1)), time.timed_candidate("b", cost(2))}, options);
  EXPECT_EQ(result.disturbed, 0);
  EXPECT_EQ(result.rounds, 6);
  EXPECT_NEAR(result.rows[1].relative, 2, 1e-6);
  // A long one takes part of every slice: after four tries its round is dropped.
  const auto slow = measure({time.timed_candidate("a", cost(100))}, options);
  EXPECT_GT(slow.disturbed, 0);
}

TEST(Measure, ARoundEndsWithItsFirstDisturbedTurn) {
  FakeTime time;
  MeasureOptions options;
  options.clock = time.clock();
  options.seconds = 0;
  options.watch = [] { return [] { return true; }; };
  int runs = 0;
  const auto counted = [&] {
    ++runs;
    return 200.0;
  };
  const auto result =
      measure({time.timed_candidate("a", counted), time.timed_candidate("b", counted)}, options);
  EXPECT_TRUE(result.too_busy);
  EXPECT_EQ(result.disturbed, 6);
  EXPECT_EQ(runs, 2 * 3 + 6 * 4);  // warm-up, then four tries of one candidate in each round
}

TEST(Measure, DisturbedRoundsAreDroppedAndMadeAgain) {
  FakeTime time;
  MeasureOptions options;
  options.clock = time.clock();
  options.seconds = 30;
  options.max_rounds = 10;
  // Others come for a while: eager waits for a thread that has no processor, and takes twelve milliseconds.
  const auto busy = [&] { return time.now > 1 && time.now < 15; };
  options.watch = watch_of(busy);
  const auto result = measure(
      {time.timed_candidate("eager", [&] { return busy() ? 12000.0 : 100.0; }), time.steady("ours", 50)},
      options);
  EXPECT_GT(result.disturbed, 0);
  EXPECT_EQ(result.rounds, 10);
  EXPECT_FALSE(result.too_busy);
  EXPECT_NEAR(paired_ratio(result.rows[0], result.rows[1]), 2, 1e-6);
  EXPECT_NEAR(paired_interval(result.rows[0], result.rows[1]).high, 2, 1e-6);
  EXPECT_NO_THROW(require_quiet(result));
}

TEST(Measure, AMachineThatIsAlwaysBusyIsSaidToBe) {
  FakeTime time;
  MeasureOptions options;
  options.clock = time.clock();
  options.seconds = 20;
  options.watch = watch_of([] { return true; });
  const auto result = measure({time.steady("a", 100), time.steady("b", 100)}, options);
  EXPECT_TRUE(result.too_busy);
  EXPECT_EQ(result.rounds, 0);
  EXPECT_GE(result.disturbed, 6);
  EXPECT_LT(result.seconds, 23);
  try {
    require_quiet(result);
    FAIL();
  } catch (const MachineBusy& error) {
    EXPECT_THAT(error.what(), HasSubstr(fmt::format("too busy to say ({0} of {0} rounds", result.disturbed)));
  }
}

TEST(Measure, FewQuietRoundsMustTellTheLeaderFromTheOthers) {
  for (const double noise : {0.01, 0.5}) {
    FakeTime time;
    std::mt19937 generator(7);
    std::normal_distribution<double> draw(0, noise);
    MeasureOptions options;
    options.clock = time.clock();
    options.seconds = 200;
    options.max_rounds = 8;
    bool busy = false;
    int turns = 0;
    options.watch = [&] {
      busy = ++turns % 12 > 1;  // most rounds are lost
      return [&] { return busy; };
    };
    const auto noisy = [&](double ms) { return [&, ms] { return ms * std::exp(draw(generator)); }; };
    const auto result =
        measure({time.timed_candidate("a", noisy(300)), time.timed_candidate("b", noisy(310))}, options);
    ASSERT_GE(result.rounds, 6);
    ASSERT_GT(result.disturbed, result.rounds);
    EXPECT_EQ(result.too_busy, noise > 0.1);
  }
}

TEST(Measure, WhatOthersAreDividedByStaysInEveryRound) {
  FakeTime time;
  MeasureOptions options;
  options.clock = time.clock();
  options.seconds = 30;
  options.drop_ratio = 1.3;
  auto baseline = time.steady("baseline", 1000);
  baseline.always = true;
  const auto result = measure({baseline, time.steady("fast", 100)}, options);
  EXPECT_EQ(result.rows[0].times.size(), result.rows[1].times.size());
  EXPECT_GT(result.rows[0].times.size(), 10U);
}

TEST(PairedInterval, IsOpenWithFewerThanSixRounds) {
  const MeasuredTime a{.times = {2, 2, 2, 2, 2}}, b{.times = {1, 1, 1, 1, 1, 1}};
  EXPECT_EQ(paired_ratio(a, b), 2);
  EXPECT_TRUE(paired_interval(a, b).is_open());
  EXPECT_FALSE(paired_interval(b, b).is_open());
  EXPECT_TRUE(paired_interval(MeasuredTime{}, b).is_open());
}

// The real clock, with costs that a busy machine cannot turn around.
TEST(Measure, MeasuresRealTime) {
  const auto sleeping = [](std::string name, int ms) {
    return TimedCandidate{.name = std::move(name),
                          .run = [ms] { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }};
  };
  MeasureOptions options;
  options.seconds = 1;
  options.confidence = 0.05;
  const auto result = measure({sleeping("long", 25), sleeping("short", 2)}, options);
  EXPECT_EQ(result.leader, 1U);
  EXPECT_GE(result.rows[1].median, 2);
  EXPECT_GE(result.rows[0].median, 25);
  EXPECT_GT(result.rows[0].relative, 1.5);
}

}  // namespace
}  // namespace halftone
