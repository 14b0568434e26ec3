// Strategies and verdicts on made-up measurements.
#include "tune/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "graph/test_support.h"

namespace halftone {
namespace {

using testing::HasSubstr;

constexpr double kEager = 20, kFp32 = 10;

CandidateReport row(std::string name, double ms, double cosine, int64_t bytes = 100) {
  CandidateReport made;
  made.name = std::move(name);
  made.verdict = Verdict::kValid;
  made.times = {{.median = ms,
                 .p10 = ms,
                 .p90 = ms,
                 .low = ms,
                 .high = ms,
                 .runs = 10,
                 .to_eager = ms / kEager,
                 .to_fp32 = ms / kFp32}};
  made.accuracy = Accuracy{cosine, cosine, 0, 0, {}};
  made.latency_ms = ms;
  made.throughput = 1e3 / ms;
  made.bytes = bytes;
  return made;
}

TuneReport report(std::vector<CandidateReport> others, double min_cosine = 0.99) {
  TuneReport made;
  made.min_cosine = min_cosine;
  made.candidates = {row("eager", kEager, 1, 400), row("fp32", kFp32, 1, 400)};
  made.candidates[0].is_eager = true;
  made.candidates[1].is_fp32 = true;
  for (CandidateReport& other : others) made.candidates.push_back(std::move(other));
  return made;
}

TuneReport chosen_by(const Strategy& strategy, std::vector<CandidateReport> others) {
  TuneReport made = report(std::move(others), strategy.min_cosine.value_or(0.99));
  made.strategy = strategy.name;
  choose(made, strategy);
  return made;
}

TEST(Judge, DropsWhatIsWrongOrSlowWithTheNumbers) {
  auto nan = row("nan", 5, 1);
  nan.accuracy->nans = 3;
  auto no_number = row("no-number", 5, std::nan(""));
  auto failed = row("failed", 5, 1);
  failed.verdict = Verdict::kFailed;
  failed.reason = "it crashed (SIGSEGV)";
  const TuneReport made =
      chosen_by(max_throughput(), {row("fine", 9, 0.995), row("wrong", 1, 0.95), nan, no_number,
                                   row("slow", 15, 1), row("slowest", 30, 1), failed});
  EXPECT_EQ(made.chosen, "fine");
  EXPECT_TRUE(made.won);
  EXPECT_THAT(made.find("wrong")->reason, HasSubstr("cosine 0.95000 to eager, less than 0.99"));
  EXPECT_THAT(made.find("nan")->reason, HasSubstr("3 elements are NaN"));
  EXPECT_EQ(made.find("no-number")->verdict, Verdict::kDropped);
  EXPECT_THAT(made.find("slow")->reason,
              HasSubstr("not faster than Halftone's fp32: 1.50 times its time (15.000 ms)"));
  EXPECT_THAT(made.find("slowest")->reason, HasSubstr("not faster than eager: 1.50 times"));
  EXPECT_EQ(made.find("failed")->verdict, Verdict::kFailed);
  EXPECT_EQ(made.find("failed")->reason, "it crashed (SIGSEGV)");
  EXPECT_EQ(made.find("fp32")->verdict, Verdict::kValid);
  EXPECT_EQ(made.find("fine")->verdict, Verdict::kChosen);
  EXPECT_THAT(made.find("fine")->reason,
              HasSubstr("2.22 times as fast as eager, 1.11 times as fast as Halftone's fp32"));
}

/// The ratios of `made` with intervals this wide.
CandidateReport with_interval(CandidateReport made, double half) {
  ShapeTime& time = made.times[0];
  time.eager_interval = {time.to_eager * (1 - half), time.to_eager * (1 + half)};
  time.fp32_interval = {time.to_fp32 * (1 - half), time.to_fp32 * (1 + half)};
  return made;
}

TEST(Judge, WhatMayBeAsFastIsNotSurelyFaster) {
  const TuneReport made = chosen_by(max_throughput(), {with_interval(row("unsure", 9.8, 1), 0.05),
                                                       with_interval(row("sure", 9.8, 1), 0.01)});
  EXPECT_EQ(made.chosen, "sure");
  EXPECT_EQ(made.find("unsure")->verdict, Verdict::kDropped);
  EXPECT_EQ(made.find("unsure")->reason,
            "not surely faster than Halftone's fp32: 0.980 times its time, 0.931 to 1.029 after 10 rounds");
  EXPECT_THAT(made.find("sure")->reason, HasSubstr("to eager 2.02 to 2.06 (95 %, 10 rounds)"));
}

TEST(Judge, AnOpenIntervalGivesNoVerdict) {
  auto brief = with_interval(row("brief", 1, 1), 0.01);
  brief.times[0].runs = 2;
  brief.times[0].eager_interval = brief.times[0].fp32_interval = {0, std::numeric_limits<double>::infinity()};
  brief.times[0].high = std::numeric_limits<double>::infinity();
  const TuneReport made = chosen_by(max_throughput(), {brief});
  EXPECT_EQ(made.chosen, "fp32");
  EXPECT_EQ(made.find("brief")->reason, "not measured long enough: 2 rounds");
  EXPECT_THAT(made.to_text(), testing::Not(HasSubstr("20.00 x")));
}

TEST(Judge, SaysWhichOthersMayBeAsFast) {
  const TuneReport made =
      chosen_by(max_throughput(), {with_interval(row("a", 5, 1), 0.02), with_interval(row("b", 5.1, 1), 0.02),
                                   with_interval(row("c", 6, 1), 0.02)});
  EXPECT_EQ(made.chosen, "a");
  EXPECT_TRUE(made.find("a")->reason.ends_with("; not surely faster than b")) << made.find("a")->reason;
}

TEST(Judge, Fp32MustOnlyBeatEager) {
  TuneReport made = report({});
  made.candidates[1].times[0].to_eager = 1.2;
  made.strategy = "throughput";
  choose(made, max_throughput());
  EXPECT_EQ(made.chosen, "eager");
  EXPECT_FALSE(made.won);
  EXPECT_EQ(made.find("fp32")->verdict, Verdict::kDropped);
}

TEST(Judge, SaysPlainlyThatNothingWon) {
  const TuneReport made = chosen_by(max_throughput(), {row("slow", 12, 1)});
  EXPECT_EQ(made.chosen, "fp32");
  EXPECT_FALSE(made.won);
  ASSERT_EQ(made.notes.size(), 1U);
  EXPECT_THAT(made.notes[0], HasSubstr("is better than fp32"));
  EXPECT_THAT(made.to_text(), HasSubstr("Nothing won. Taken: fp32"));
}

TEST(Judge, JudgesAgainByAnotherStrategy) {
  TuneReport made = chosen_by(max_throughput(), {row("a", 5, 0.992, 100), row("b", 9, 0.999, 50)});
  EXPECT_EQ(made.chosen, "a");
  choose(made, smallest_size(100));
  EXPECT_EQ(made.chosen, "b");
  EXPECT_EQ(made.find("a")->verdict, Verdict::kValid);
}

TEST(Strategies, ThroughputAndLatencyLookAtTheirOwnNumber) {
  auto a = row("a", 5, 1), b = row("b", 4, 1);
  a.throughput = 1000;  // better in large batches, which latency does not count
  EXPECT_EQ(chosen_by(max_throughput(), {a, b}).chosen, "a");
  EXPECT_EQ(chosen_by(min_latency(), {a, b}).chosen, "b");
}

TEST(Strategies, FirstWinTakesTheOrderOfTheCandidates) {
  EXPECT_TRUE(first_win().stop_at_first);
  EXPECT_EQ(chosen_by(first_win(), {row("slow", 12, 1), row("first", 9, 1), row("faster", 3, 1)}).chosen,
            "first");
  const TuneReport none = chosen_by(first_win(), {row("slow", 12, 1)});
  EXPECT_EQ(none.chosen, "fp32");
  EXPECT_THAT(none.notes.at(0), HasSubstr("No candidate meets the strategy \"first\""));
}

TEST(Strategies, OneBackendTakesNoOther) {
  EXPECT_EQ(chosen_by(one_backend("b"), {row("a", 2, 1), row("b", 9, 1)}).chosen, "b");
  const TuneReport dropped = chosen_by(one_backend("b"), {row("a", 2, 1), row("b", 12, 1)});
  EXPECT_EQ(dropped.chosen, "fp32");
  EXPECT_FALSE(dropped.won);
}

TEST(Strategies, LatencyBudgetHoldsAtEveryShape) {
  auto two = row("two", 4, 1), even = row("even", 6, 1);
  two.throughput = 900;
  two.times.push_back(two.times[0]);
  two.times[1].median = 9;
  EXPECT_EQ(chosen_by(latency_budget(10), {two, even}).chosen, "two");
  EXPECT_EQ(chosen_by(latency_budget(7), {two, even}).chosen, "even");
  EXPECT_EQ(chosen_by(latency_budget(1), {two, even}).won, false);
  expect_error(ErrorCode::kInvalidArgument, {"latency budget"}, [] { latency_budget(0); });
}

TEST(Strategies, AccuracyBudgetIsStrongerThanTheOptions) {
  const auto rows = [] {
    return std::vector{row("rough", 2, 0.96), row("good", 4, 0.995), row("best", 8, 0.9999)};
  };
  EXPECT_EQ(chosen_by(accuracy_budget(0.95), rows()).chosen, "rough");
  EXPECT_EQ(chosen_by(max_throughput(), rows()).chosen, "good");
  EXPECT_EQ(chosen_by(accuracy_budget(0.999), rows()).chosen, "best");
}

TEST(Strategies, MetricBudgetAsksTheUsersMetric) {
  auto a = row("a", 2, 1), b = row("b", 4, 1);
  a.accuracy->metric = 0.7;
  b.accuracy->metric = 0.9;
  EXPECT_EQ(chosen_by(metric_budget(0.8), {a, b}).chosen, "b");
  EXPECT_EQ(chosen_by(metric_budget(0.5), {a, b}).chosen, "a");
  a.accuracy->metric = std::nan("");
  EXPECT_EQ(chosen_by(metric_budget(0.5), {a, b}).chosen, "b");
}

TEST(Strategies, SmallestSizeMayBeSlowerThanFp32ButNotThanItsLimitOrEager) {
  const auto rows = [] {
    return std::vector{row("large", 5, 1, 200), row("small", 15, 1, 50), row("tiny", 25, 1, 10)};
  };
  EXPECT_EQ(chosen_by(smallest_size(100), rows()).chosen, "small");
  EXPECT_EQ(chosen_by(smallest_size(12), rows()).chosen, "large");
}

TEST(Strategies, AUsersOwnPlugsIn) {
  Strategy own;
  own.name = "own";
  own.choose = [](const std::vector<CandidateReport>& rows) {
    return std::optional<size_t>(rows.size() - 1);
  };
  EXPECT_EQ(chosen_by(own, {row("a", 2, 1), row("b", 4, 1)}).chosen, "b");
  expect_error(ErrorCode::kInvalidArgument, {"own", "chose bad, which is not valid"}, [&] {
    chosen_by(own, {row("a", 2, 1), row("bad", 4, 0.2)});
  });
}

TEST(Strategies, HaveNames) {
  for (const std::string& name : strategy_names()) {
    const Strategy strategy = strategy_by_name(name, {.budget_ms = 5, .minimum = 0.9, .candidate = "int8wo"});
    EXPECT_TRUE(strategy.name.starts_with(name)) << strategy.name;
    EXPECT_TRUE(strategy.choose);
  }
  expect_error(ErrorCode::kInvalidArgument, {"did you mean \"latency\""},
               [] { strategy_by_name("latenci"); });
  expect_error(ErrorCode::kInvalidArgument, {"size", "needs"}, [] { strategy_by_name("size"); });
  expect_error(ErrorCode::kInvalidArgument, {"accuracy", "needs"}, [] { strategy_by_name("accuracy"); });
}

TEST(Score, WeighsShapesEquallyInLog) {
  SampleShape one, eight, one_long;
  one.batch = 1;
  eight.batch = 8;
  one_long.batch = 1;
  CandidateReport made;
  made.times = {{.median = 2}, {.median = 8}, {.median = 8}};
  score(made, {one, eight, one_long});
  EXPECT_NEAR(made.latency_ms, 4, 1e-9);  // of the two with batch 1
  EXPECT_NEAR(made.throughput, std::cbrt(500.0 * 1000.0 * 125.0), 1e-6);
  SampleShape none;
  made.times = {{.median = 4}};
  score(made, {none});
  EXPECT_NEAR(made.throughput, 250, 1e-9);  // calls
}

}  // namespace
}  // namespace halftone
