// Reports as text and JSON, and the cache of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <limits>
#include <mutex>
#include <sstream>

#include "halftone/base/log.h"
#include "tune/report/cache.h"
#include "tune/report/fingerprint.h"
#include "tune/test_support.h"

namespace halftone {
namespace {

using testing::HasSubstr;

/// Collects what the library logs while it lives.
class LogCatcher {
 public:
  LogCatcher() {
    set_log_sink([this](LogLevel, std::string_view text) {
      const std::lock_guard lock(mutex_);
      text_ += std::string(text) + "\n";
    });
  }
  ~LogCatcher() { set_log_sink({}); }
  std::string text() {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  std::mutex mutex_;
  std::string text_;
};

TuneReport full_report() {
  TuneReport report;
  report.model = "a model with a long name, \"quoted\", as files are named sometimes.pt2";
  report.model_hash = "abc";
  report.cpu = "A CPU";
  report.isa = "avx2";
  report.threads = 2;
  report.version = "0.1.0";
  report.strategy = "throughput";
  report.min_cosine = 0.99;
  report.metric = "mine";
  report.shapes = {{{{"x", "f32", {1, 128}}, {"mask", "i64", {}}}, 1, 4},
                   {{{"x", "f32", {32, 128}}, {"mask", "i64", {}}}, 32, 1}};
  report.ranges = {{"s0", 1, std::numeric_limits<int64_t>::max(), true, {"s0 = 1: runs"}},
                   {"s1", 2, 9, false, {}}};
  report.held_out = 3;
  report.synthetic = 1;
  CandidateReport good;
  good.name = "a-candidate-with-a-name-that-does-not-fit-into-tables";
  good.backend = "QuantBackend(quantization_config=Int8WeightOnlyConfig())";
  good.key = "QuantBackend_0123456789abcdef";
  good.times = {{1.5, 1.4, 1.9, 1.45, 1.6, 20, 0.5, 0.75},
                {1234.5, 1200, 1300, 0, std::numeric_limits<double>::infinity(), 3, 0.5, 0}};
  good.latency_ms = 1.5;
  good.throughput = 123;
  good.accuracy = Accuracy{0.995, 0.999, 0.01, 0, 0.5};
  good.bytes = 90'000'000;
  good.peak_bytes = 12'000'000;
  good.compile_ms = 321;
  good.verdict = Verdict::kChosen;
  good.reason = "2.00 times as fast as eager";
  CandidateReport eager;
  eager.name = "eager";
  eager.is_eager = true;
  eager.verdict = Verdict::kValid;
  CandidateReport bad;
  bad.name = "bad";
  bad.is_fp32 = true;
  bad.verdict = Verdict::kFailed;
  bad.reason = std::string(300, 'x') + " and more words that do not end";
  bad.accuracy = Accuracy{std::numeric_limits<double>::quiet_NaN(), 0, 0, 12, {}};
  report.candidates = {eager, bad, good};
  report.chosen = good.name;
  report.won = true;
  report.seconds = 12.5;
  report.measured_at = "2026-01-31T12:00:00Z";
  report.notes = {"Something that people should know."};
  return report;
}

TEST(TuneReport, JsonGoesThereAndBack) {
  const TuneReport report = full_report();
  const std::string json = report.to_json();
  const TuneReport back = TuneReport::from_json(json);
  EXPECT_EQ(back.to_json(), json);
  EXPECT_EQ(back.find(report.chosen)->times[1].high, std::numeric_limits<double>::infinity());
  EXPECT_EQ(back.find(report.chosen)->accuracy->metric, 0.5);
  EXPECT_TRUE(std::isnan(back.find("bad")->accuracy->min_cosine));
  EXPECT_TRUE(back.find("bad")->is_fp32);
  EXPECT_EQ(back.ranges[0].max, std::numeric_limits<int64_t>::max());
  EXPECT_EQ(back.shapes[0].tensors[0].sizes, (std::vector<int64_t>{1, 128}));
  EXPECT_EQ(back.find("nobody"), nullptr);
}

TEST(TuneReport, RefusesWhatIsNoReport) {
  for (const std::string json : {"", "{}", "[]", R"({"format":"other"})"}) {
    EXPECT_THROW(TuneReport::from_json(json), Error) << json;
  }
  std::string other = full_report().to_json();
  other.replace(other.find("\"chosen\""), 8, "\"chasen\"");
  expect_error(ErrorCode::kCorruptFile, {"tuning report", "chosen"}, [&] { TuneReport::from_json(other); });
}

TEST(TuneReport, TextIsAtMost100ColumnsWide) {
  const std::string text = full_report().to_text();
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto width = std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; });
    // A word that is longer than the page is not broken.
    if (line.find("xxxxxxxx") != std::string::npos) continue;
    EXPECT_LE(width, 100) << line;
  }
  for (const char* part :
       {"eager", "chosen", "failed", "0.99500", "90.0 MB", "12.0 MB", "321 ms", "1x128", "32x128", "2.00 x",
        "1 made up", "s0 = 1: runs", "Something that people", "12.5 s", "A CPU"})
    EXPECT_THAT(text, HasSubstr(part));
  TuneReport cached = full_report();
  cached.from_cache = true;
  EXPECT_THAT(cached.to_text(), HasSubstr("from the cache of 2026-01-31T12:00:00Z"));
}

TEST(ModelHash, DependsOnGraphAndTensors) {
  at::manual_seed(0);
  const auto model = napping_model(1);
  const std::string hash = model_hash(*model);
  EXPECT_EQ(hash.size(), 64U);
  EXPECT_EQ(model_hash(*model->clone()), hash);
  const auto heavier = model->clone();
  heavier->set_tensor("fc.weight", model->tensor("fc.weight") + 1e-6);
  EXPECT_NE(model_hash(*heavier), hash);
  const auto longer = model->clone();
  set_nap(*longer, 2);
  EXPECT_NE(model_hash(*longer), hash);
  const auto wider = model->clone();
  wider->ranges["s0"].max = 65;
  EXPECT_NE(model_hash(*wider), hash);
}

class TuneCache : public testing::Test {
 protected:
  TuneCache() {
    options.candidates = {{"quick", quick}, {"rough", rough}};
    options.time_limit = 8;
    options.confidence = 0.2;
    options.cache_dir = (folder.path / "made" / "on demand").string();
  }
  TuneReport run(const Strategy& strategy = max_throughput()) {
    return tune(model, samples, strategy, options).report;
  }
  std::filesystem::path file() const {
    std::filesystem::path found;
    for (const auto& entry : std::filesystem::directory_iterator(options.cache_dir)) found = entry.path();
    return found;
  }

  TestFolder folder;
  std::shared_ptr<GraphModule> model = napping_model(3);
  std::shared_ptr<const ChangingRecipe> quick = napping_recipe("Quick", 1);
  std::shared_ptr<const ChangingRecipe> rough = napping_recipe("Rough", 0.4);
  std::vector<Sample> samples{call_of(2)};
  TuneOptions options;
};

TEST_F(TuneCache, TuningAgainMeasuresNothing) {
  const TuneReport first = run();
  EXPECT_EQ(first.chosen, "rough");
  EXPECT_FALSE(first.from_cache);
  EXPECT_EQ(rough->prepared, 1);  // what was measured is what comes out
  EXPECT_EQ(quick->prepared, 1);
  const auto start = std::chrono::steady_clock::now();
  const TuneReport second = run();
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 1);
  EXPECT_TRUE(second.from_cache);
  EXPECT_EQ(second.chosen, "rough");
  EXPECT_EQ(second.measured_at, first.measured_at);
  EXPECT_EQ(second.find("quick")->latency_ms, first.find("quick")->latency_ms);
  EXPECT_EQ(rough->prepared, 2);  // it was measured in another run
  EXPECT_EQ(quick->prepared, 1);
  EXPECT_TRUE(dry_run(model, samples, max_throughput(), options).cached);
}

TEST_F(TuneCache, AnotherStrategyIsAppliedToTheSameMeasurements) {
  run();
  const TuneReport fast_enough = run(latency_budget(100));
  EXPECT_TRUE(fast_enough.from_cache);
  EXPECT_EQ(fast_enough.strategy, "latency-budget (100 ms)");
  const TuneReport impossible = run(latency_budget(0.001));
  EXPECT_TRUE(impossible.from_cache);
  EXPECT_FALSE(impossible.won);
  // This one measures other things.
  EXPECT_FALSE(run(first_win()).from_cache);
}

TEST_F(TuneCache, AChangeOfAnythingMeasuresAnew) {
  run();
  samples = {call_of(3)};
  EXPECT_FALSE(run().from_cache);
  samples = {call_of(2)};
  EXPECT_TRUE(run().from_cache);
  options.min_cosine = 0.9;
  EXPECT_FALSE(run().from_cache);
  options.min_cosine = 0.99;
  model->set_tensor("fc.weight", model->tensor("fc.weight") * 2);
  EXPECT_FALSE(run().from_cache);
  options.candidates.pop_back();
  EXPECT_FALSE(run().from_cache);
  options.metric = [](const c10::IValue&, const c10::IValue&) { return 1.0; };
  run();
  EXPECT_FALSE(run().from_cache);  // it is not known whether it is the same metric
  options.metric_name = "one";
  run();
  EXPECT_TRUE(run().from_cache);
}

TEST_F(TuneCache, DamagedAndForeignFilesAreIgnoredWithALine) {
  run();
  std::ifstream in(file(), std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  const std::string sound = text.str();
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string other = sound;
    other.replace(other.find(from), from.size(), to);
    return other;
  };
  for (const std::string& content :
       {std::string(), std::string("not JSON"), sound.substr(0, sound.size() / 2),
        changed("halftone-tuning", "something-other"), changed("\\\"won\\\": false", "\\\"won\\\": true"),
        changed("\"key\": \"", "\"key\": \"0")}) {
    std::ofstream(file(), std::ios::binary | std::ios::trunc) << content;
    LogCatcher log;
    EXPECT_FALSE(run().from_cache) << content.substr(0, 80);
    EXPECT_THAT(log.text(), HasSubstr("cache of tunings: tune-"));
    EXPECT_THAT(log.text(), testing::Not(HasSubstr(folder.path.string())));
    EXPECT_TRUE(run().from_cache);
  }
}

TEST_F(TuneCache, AFolderThatCannotBeWrittenIsAWarning) {
  std::ofstream(folder.path / "file") << "x";
  options.cache_dir = (folder.path / "file" / "below").string();
  LogCatcher log;
  EXPECT_EQ(run().chosen, "rough");
  EXPECT_THAT(log.text(), HasSubstr("nothing is kept"));
}

}  // namespace
}  // namespace halftone
