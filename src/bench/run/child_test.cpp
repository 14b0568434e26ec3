// Jobs in child processes: whatever becomes of the child, a row comes back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "bench/run/test_support.h"
#include "graph/test_support.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;

BenchRunOptions child_options(const std::string& what) {
  BenchRunOptions options;
  options.command = {HALFTONE_TEST_CHILD, what};
  options.timeout = 60;
  return options;
}

BenchRow row_of(const std::string& what, double timeout = 60, int64_t memory = 0) {
  BenchRunOptions options = child_options(what);
  options.timeout = timeout;
  options.memory_limit = memory;
  const BenchResults results = run_bench_suite({short_job("tiny_mlp")}, options);
  EXPECT_EQ(results.rows.size(), 1U);
  EXPECT_EQ(results.rows.at(0).name, "tiny_mlp");
  EXPECT_EQ(results.rows.at(0).batch_size, 4);
  return results.rows.at(0);
}

TEST(BenchChildren, RowsComeBackWhole) {
  BenchJob quantized = short_job("tiny_mlp"), training = quantized;
  quantized.scheme = "int8weightonly";
  training.mode = "training";
  BenchRunOptions options = child_options("run");
  std::vector<std::string> seen, progress;
  options.row = [&](const BenchRow& row) { seen.push_back(row.scheme + row.mode); };
  options.progress = [&](int64_t done, int64_t total, std::string_view what) {
    EXPECT_EQ(total, 2);
    progress.push_back(fmt::format("{} {}", done, what));
  };
  const BenchResults results = run_bench_suite({quantized, training}, options);
  ASSERT_EQ(results.rows.size(), 2U);
  for (const BenchRow& row : results.rows) {
    EXPECT_EQ(row.accuracy, "pass") << row.error;
    EXPECT_GT(row.speedup.value(), 0);
  }
  EXPECT_FALSE(results.rows[0].layers.empty());
  EXPECT_THAT(seen, ::testing::ElementsAre("int8weightonlyinference", "noquanttraining"));
  EXPECT_THAT(progress,
              ::testing::ElementsAre("0 tiny_mlp, inference, int8weightonly", "1 tiny_mlp, training", "2 "));
  EXPECT_FALSE(results.machine.cpu.empty());
  EXPECT_GE(results.machine.threads, 1);
  EXPECT_TRUE(results.machine.versions.contains("torch"));
  EXPECT_THAT(results.machine.date, ::testing::EndsWith("Z"));
}

TEST(BenchChildren, CrashIsARow) {
  const BenchRow row = row_of("crash");
  EXPECT_EQ(row.accuracy, "fail_to_run");
  EXPECT_THAT(row.error, HasSubstr("SIGSEGV"));
  EXPECT_THAT(row.error, HasSubstr("a library's complaint"));
}

TEST(BenchChildren, ExitCodeIsARow) {
  const BenchRow row = row_of("exit");
  EXPECT_EQ(row.accuracy, "fail_to_run");
  EXPECT_THAT(row.error, HasSubstr("exit code 7"));
}

TEST(BenchChildren, JunkIsARow) {
  for (const char* what : {"junk", "silent"}) {
    const BenchRow row = row_of(what);
    EXPECT_EQ(row.accuracy, "infra_error") << what;
    EXPECT_THAT(row.error, HasSubstr("no row came back"));
  }
}

TEST(BenchChildren, TimeOutIsARow) {
  const auto start = std::chrono::steady_clock::now();
  const BenchRow row = row_of("hang", 1.5);
  EXPECT_EQ(row.accuracy, "timeout");
  EXPECT_THAT(row.error, HasSubstr("1.5 s"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

TEST(BenchChildren, MemoryLimitIsARow) {
  const BenchRow row = row_of("eat", 60, int64_t{500} << 20);
  EXPECT_EQ(row.accuracy, "OOM");
  EXPECT_THAT(row.error, HasSubstr("524 MB"));
  EXPECT_EQ(row_of("run", 60, int64_t{4} << 30).accuracy, "pass");
}

TEST(BenchChildren, ProgramThatIsNotThereIsARow) {
  BenchRunOptions options = child_options("run");
  options.command = {"/nonexistent/halftone"};
  const BenchResults results = run_bench_suite({short_job("tiny_mlp")}, options);
  EXPECT_EQ(results.rows.at(0).accuracy, "infra_error");
  EXPECT_THAT(results.rows.at(0).error, HasSubstr("could not be started"));
}

TEST(BenchChildren, NeverThrowInTheChild) {
  for (const char* text :
       {"", "no json", R"({"model": "nobody"})", R"({"model": "tiny_mlp", "mode": "x"})"}) {
    const BenchResults answer = bench_results_from_json(run_bench_child(text), "answer");
    ASSERT_EQ(answer.rows.size(), 1U);
    EXPECT_EQ(answer.rows[0].accuracy, "infra_error");
    EXPECT_FALSE(answer.rows[0].error.empty());
  }
}

TEST(BenchChildren, WithoutACommandJobsRunHere) {
  BenchJob job = short_job("tiny_mlp");
  job.performance = false;
  const BenchResults results = run_bench_suite({job, job});
  ASSERT_EQ(results.rows.size(), 2U);
  EXPECT_EQ(results.rows[1].accuracy, "pass") << results.rows[1].error;
}

}  // namespace
}  // namespace halftone
