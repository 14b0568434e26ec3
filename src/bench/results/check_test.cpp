#include <gmock/gmock.h>

#include <cmath>
#include <sstream>

#include "bench/results/test_rows.h"

namespace halftone {
namespace {

using testing::HasSubstr;
using testing::Not;

using Kind = BenchFindingKind;

BenchCheck check(const BenchRow& expected, const BenchRow& now, const BenchCheckOptions& options = {}) {
  return check_bench({&expected, 1}, {&now, 1}, options);
}

std::vector<Kind> kinds(const BenchCheck& check) {
  std::vector<Kind> result;
  for (const BenchFinding& finding : check.findings) result.push_back(finding.kind);
  return result;
}

TEST(BenchCheck, SameIsFine) {
  const BenchCheck result = check(full_row(), full_row());
  EXPECT_TRUE(result.findings.empty());
  EXPECT_EQ(result.compared, 1);
  EXPECT_EQ(result.exit_code(), 0);
  EXPECT_EQ(result.text(), "as expected: 1 compared, 0 regressions, 0 out of date, 0 notes\n");
}

TEST(BenchCheck, AccuracyMustMatch) {
  BenchRow failed = full_row();
  failed.accuracy = "fail_accuracy";
  failed.error = "cosine 0.2";
  BenchCheck result = check(full_row(), failed);
  EXPECT_EQ(kinds(result), std::vector{Kind::kAccuracyWorse});
  EXPECT_EQ(result.findings[0].message, "fail_accuracy, expected pass: cosine 0.2");
  EXPECT_EQ(result.exit_code(), 1);

  result = check(failed, full_row());
  EXPECT_EQ(kinds(result), std::vector{Kind::kAccuracyBetter});
  EXPECT_EQ(result.exit_code(), 3);

  BenchRow other = failed;
  other.accuracy = "fail_to_run";
  EXPECT_EQ(check(failed, other).exit_code(), 1);
  EXPECT_EQ(check(failed, failed).exit_code(), 0);

  BenchRow unknown = full_row();
  unknown.accuracy = "";
  EXPECT_EQ(check(full_row(), unknown).exit_code(), 1);
  EXPECT_EQ(check(unknown, full_row()).exit_code(), 3);
  EXPECT_EQ(check(unknown, failed).exit_code(), 1);
}

TEST(BenchCheck, SpeedMayFallByTheTolerance) {
  BenchRow expected = full_row();
  expected.speedup = 2.0;
  BenchRow now = full_row();
  now.speedup = 1.81;
  EXPECT_EQ(check(expected, now).exit_code(), 0);
  now.speedup = 1.79;
  EXPECT_EQ(kinds(check(expected, now)), std::vector{Kind::kSlower});
  EXPECT_EQ(check(expected, now).exit_code(), 1);
  EXPECT_EQ(check(expected, now, {.tolerance = 0.2}).exit_code(), 0);
  now.speedup = 2.3;
  EXPECT_EQ(kinds(check(expected, now)), std::vector{Kind::kFaster});
  EXPECT_EQ(check(expected, now).exit_code(), 0);
  for (const std::optional<double> none : {std::optional<double>(), std::optional<double>(std::nan(""))}) {
    now.speedup = none;
    EXPECT_EQ(kinds(check(expected, now)), std::vector{Kind::kSlower});
    EXPECT_TRUE(kinds(check(now, expected)).empty());
  }
  EXPECT_THAT(error_of([&] { check(expected, now, {.tolerance = 1.5}); }), HasSubstr("tolerance 1.5"));
}

TEST(BenchCheck, WhatWasNotTimedIsNotSlower) {
  BenchRow now = full_row();
  now.speedup = std::nullopt;
  EXPECT_TRUE(kinds(check(full_row(), now, {.timed = false})).empty());
  const auto kept = updated_expectations(std::vector{full_row()}, std::vector{now}, {.timed = false});
  EXPECT_EQ(kept.at(0).speedup, full_row().speedup);
  EXPECT_FALSE(row_is_sound(now, true));
  EXPECT_TRUE(row_is_sound(now, false));
  now.accuracy = "pass_due_to_skip";
  EXPECT_TRUE(row_is_sound(now, true));
  now.accuracy = "fail_accuracy";
  EXPECT_FALSE(row_is_sound(now, false));
}

TEST(BenchCheck, UnsupportedOperatorsMayNotGrow) {
  BenchRow now = full_row();
  now.unsupported_ops = 4;
  EXPECT_EQ(kinds(check(full_row(), now)), std::vector{Kind::kMoreUnsupported});
  EXPECT_EQ(check(full_row(), now).exit_code(), 1);
  now.unsupported_ops = 1;
  EXPECT_EQ(kinds(check(full_row(), now)), std::vector{Kind::kFewerUnsupported});
  EXPECT_EQ(check(full_row(), now).exit_code(), 0);
  now.unsupported_ops = std::nullopt;
  EXPECT_EQ(check(full_row(), now).exit_code(), 1);
}

TEST(BenchCheck, NamesMissingNewAndDuplicateModels) {
  const std::vector<BenchRow> expected = {full_row("a"), full_row("b")};
  const std::vector<BenchRow> now = {full_row("b"), full_row("c"), full_row("b")};
  BenchCheck result = check_bench(expected, now);
  EXPECT_EQ(kinds(result), (std::vector{Kind::kMissing, Kind::kNew, Kind::kDuplicate}));
  EXPECT_EQ(result.findings[0].model, "a, batch 8, inference, int8dynamic, halftone");
  EXPECT_EQ(result.exit_code(), 1);
  EXPECT_THAT(result.text(),
              HasSubstr("worse than expected: 1 compared, 1 regression, 0 out of date, 2 notes"));
  result = check_bench(expected, now, {.partial = true});
  EXPECT_EQ(kinds(result), (std::vector{Kind::kNew, Kind::kDuplicate}));
  EXPECT_EQ(result.exit_code(), 0);
}

TEST(BenchCheck, BatchSchemeModeBackendAndDeviceAreDifferentThings) {
  std::vector<BenchRow> rows(6, full_row());
  rows[1].batch_size = 1;
  rows[2].scheme = "noquant";
  rows[3].mode = "training";
  rows[4].backend = "ts";
  rows[5].dev = "cuda";
  EXPECT_EQ(check_bench(rows, rows).compared, 6);
  EXPECT_TRUE(check_bench(rows, rows).findings.empty());
}

TEST(BenchUpdate, SortsAndLeavesOutWhatChangesEachTime) {
  BenchRow noisy = full_row("a");
  noisy.error = "at 0x7ff";
  noisy.layers = {{"l"}};
  const std::vector<BenchRow> expected = {full_row("z"), full_row("a")};
  const std::vector<BenchRow> now = {full_row("b"), noisy};
  EXPECT_EQ(updated_expectations(expected, now), (std::vector{full_row("a"), full_row("b")}));
  EXPECT_EQ(updated_expectations(expected, now, {.partial = true}),
            (std::vector{full_row("a"), full_row("b"), full_row("z")}));
  const std::vector<BenchRow> twice = {full_row("a"), full_row("a")};
  EXPECT_THAT(error_of([&] { updated_expectations({}, twice); }), HasSubstr("new results: a, batch 8"));
}

TEST(BenchUpdate, ThenTheCheckHolds) {
  const ScratchFolder folder;
  BenchRow now = full_row();
  now.accuracy = "timeout";
  now.speedup = std::nullopt;
  const std::vector<BenchRow> rows = {now, full_row("b")};
  write_bench_csv(folder.file("expected.csv"), updated_expectations({}, rows));
  EXPECT_TRUE(check_bench(read_bench_csv(folder.file("expected.csv")).rows, rows).findings.empty());
}

TEST(BenchCompare, ShowsChangesInAHundredColumns) {
  BenchRow faster =
      full_row("model.with.a.very.long.name.that.does.not.fit.in.any.table.of.a.hundred.columns");
  BenchRow slower = faster;
  slower.speedup = 0.875;
  slower.abs_latency = *faster.abs_latency * 2;
  slower.accuracy = "fail_accuracy";
  const std::vector<BenchRow> a = {faster, full_row("only_a")};
  const std::vector<BenchRow> b = {slower, full_row("only_b")};
  const std::string text = compare_bench(a, b);
  EXPECT_THAT(text, HasSubstr("-50.0 %"));
  EXPECT_THAT(text, HasSubstr("+100.0 %"));
  EXPECT_THAT(text, HasSubstr("only in A:\n- only_a, batch 8"));
  EXPECT_THAT(text, HasSubstr("only in B:\n- only_b, batch 8"));
  std::istringstream lines(text + check_bench(a, b).text() + describe_bench(b));
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; }), 100) << line;
  }
}

TEST(BenchCompare, MeansAreOfWhatBothHave) {
  std::vector<BenchRow> a = {full_row("a"), full_row("b")};
  std::vector<BenchRow> b = {full_row("a")};
  a[0].speedup = 2;
  a[1].speedup = 50;
  b[0].speedup = 3;
  EXPECT_THAT(compare_bench(a, b), HasSubstr("2.000x  3.000x  +50.0 %"));
  EXPECT_THAT(compare_bench(a, b), Not(HasSubstr("10.000x")));
  EXPECT_EQ(compare_bench({}, {}), "no row is in both\n");
}

TEST(DescribeBench, SpeedUpsHaveTheirIntervalAndCount) {
  std::vector<BenchRow> rows = {full_row("a"), full_row("b")};
  rows[1].speedup_high = std::nullopt;
  rows[1].rounds = 3;
  rows[1].abs_latency = 0.0021;  // of a model of microseconds two decimals would be nothing
  const std::string text = describe_bench(rows);
  EXPECT_THAT(text, testing::HasSubstr("1.75x ±0.05"));
  EXPECT_THAT(text, testing::HasSubstr("1.75x ±?"));
  EXPECT_THAT(text, testing::HasSubstr("median of 3 to 40 rounds"));
  EXPECT_THAT(text, testing::HasSubstr("  0.00210  "));
}

}  // namespace
}  // namespace halftone
