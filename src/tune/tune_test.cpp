#include "halftone/tune/tune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "tune/test_support.h"

namespace halftone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

double seconds_of(const std::function<void()>& action) {
  const auto start = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TuneOptions with(std::vector<TuneCandidate> candidates) {
  TuneOptions options;
  options.candidates = std::move(candidates);
  options.time_limit = 8;
  options.confidence = 0.2;
  return options;
}

TEST(Tune, TakesTheFastestThatIsRightAndSaysWhyNotTheOthers) {
  const auto model = napping_model(4);
  const auto result = tune(model, std::vector{call_of(2)}, max_throughput(),
                           with({{"quick", napping_recipe("Quick", 1)},
                                 {"quicker", napping_recipe("Quicker", 0.6)},
                                 {"garbage", garbage_recipe()},
                                 {"nan", nan_recipe()},
                                 {"slow", napping_recipe("Slow", 12)},
                                 {"throwing", throwing_recipe()}}));
  const TuneReport& report = result.report;
  EXPECT_EQ(report.chosen, "quicker");
  EXPECT_TRUE(report.won);
  EXPECT_EQ(report.find("quicker")->verdict, Verdict::kChosen);
  EXPECT_EQ(report.find("quick")->verdict, Verdict::kValid);
  EXPECT_EQ(report.find("garbage")->verdict, Verdict::kDropped);
  EXPECT_THAT(report.find("garbage")->reason, HasSubstr("cosine"));
  EXPECT_FALSE(report.find("garbage")->times.empty());
  EXPECT_EQ(report.find("nan")->verdict, Verdict::kDropped);
  EXPECT_THAT(report.find("nan")->reason, HasSubstr("NaN"));
  EXPECT_EQ(report.find("slow")->verdict, Verdict::kDropped);
  EXPECT_THAT(report.find("slow")->reason, HasSubstr("not faster than eager: "));
  EXPECT_EQ(report.find("throwing")->verdict, Verdict::kFailed);
  EXPECT_THAT(report.find("throwing")->reason, HasSubstr("no kernel for this"));
  ASSERT_NE(report.find("eager"), nullptr);
  ASSERT_NE(report.find("fp32"), nullptr);
  EXPECT_NEAR(report.find("quicker")->times.at(0).to_eager, 0.6 / 4, 0.15);
  EXPECT_EQ(report.held_out, 1);
  EXPECT_EQ(report.synthetic, 1);
  EXPECT_EQ(report.find("eager")->bytes, 8 * 8 * 4);
  EXPECT_GT(report.find("quicker")->throughput, 2 / 4e-3);
  EXPECT_LT(report.seconds, 10);
}

TEST(Tune, GivesABackendThatIsReady) {
  const auto model = napping_model(4);
  const auto result =
      tune(model, std::vector{call_of(2)}, max_throughput(), with({{"quick", napping_recipe("Quick", 1)}}));
  EXPECT_EQ(result.backend.state(), BackendState::kActive);
  EXPECT_EQ(result.backend.name(), "TestQuick");
  const at::Tensor x = at::randn({3, 8});
  EXPECT_TRUE(only_tensor(result.backend.infer({x})).allclose(Session(model).run({x})[0].toTensor()));
  const TuneReport tuning = TuneReport::from_json(result.backend.tuning());
  EXPECT_EQ(tuning.chosen, "quick");
  EXPECT_EQ(tuning.model_hash, result.report.model_hash);
  EXPECT_EQ(tuning.to_json(), result.report.to_json());
}

TEST(Tune, SaysThatNothingWon) {
  const auto result = tune(napping_model(2), std::vector{call_of(2)}, max_throughput(),
                           with({{"slow", napping_recipe("Slow", 6)}, {"throwing", throwing_recipe()}}));
  EXPECT_FALSE(result.report.won);
  EXPECT_THAT(result.report.chosen, testing::AnyOf("eager", "fp32"));
  EXPECT_THAT(result.report.to_text(), HasSubstr("Nothing won"));
  EXPECT_EQ(result.backend.state(), BackendState::kActive);
}

TEST(Tune, MeasuresEveryShape) {
  const auto result = tune(napping_model(3), std::vector{call_of(1), call_of(4), call_of(4)},
                           max_throughput(), with({{"quick", napping_recipe("Quick", 1)}}));
  ASSERT_EQ(result.report.shapes.size(), 2U);
  EXPECT_EQ(result.report.shapes[0].label(), "1x8");
  EXPECT_EQ(result.report.shapes[1].batch, 4);
  EXPECT_EQ(result.report.shapes[1].calls, 2U);
  EXPECT_EQ(result.report.find("quick")->times.size(), 2U);
  EXPECT_NEAR(result.report.find("quick")->latency_ms, 1, 0.5);
  // One sample is held out, and the shape that it does not have gets a made-up one.
  EXPECT_EQ(result.report.held_out, 2);
  EXPECT_EQ(result.report.synthetic, 1);
}

TEST(Tune, TriesTheEndsOfEveryRange) {
  const auto model = napping_model(1);
  const auto result =
      tune(model, std::vector{call_of(4)}, max_throughput(), with({{"quick", napping_recipe("Quick", 0.2)}}));
  ASSERT_EQ(result.report.ranges.size(), 1U);
  EXPECT_EQ(result.report.ranges[0].symbol, "s0");
  EXPECT_THAT(result.report.ranges[0].checks,
              ElementsAre("s0 = 1: runs", "s0 = 16 (the range ends at 64): runs"));
  const auto guarded = napping_model(1);
  guarded->guards.push_back({SymExpr::parse("s0 >= 3"), "s0 >= 3"});
  const auto other = tune(guarded, std::vector{call_of(4)}, max_throughput(),
                          with({{"quick", napping_recipe("Quick", 0.2)}}));
  EXPECT_THAT(other.report.ranges[0].checks.at(0), HasSubstr("s0 = 1: does not run: "));
  EXPECT_EQ(other.report.chosen, "quick");
}

// A candidate that is right where the samples are and wrong at the end of a range is wrong.
TEST(Tune, ValidatesAtTheEndsOfRanges) {
  auto model = module_from_text(R"(
graph(%x: user "x" f32[s0, 8]) {
  %n: f32[s0, 8] = halftone_tune_test::nap(%x, 2.0)
  %m: f32[1, 8] = aten::mean.dim(%n, [0], true)
  %d: f32[s0, 8] = aten::sub.Tensor(%n, %m)
  %s: f32[1, 8] = aten::mul.Tensor(%m, 0.001)
  %y: f32[s0, 8] = aten::add.Tensor(%d, %s)
  return %y
})");
  model->ranges["s0"] = {1, 64};
  // Without the mean's share the answer is nearly the same for many rows, and nothing like it for one.
  const auto without = std::make_shared<const ChangingRecipe>("Without", [](GraphModule& module) {
    set_nap(module, 0.2);
    Graph& graph = module.mutable_graph();
    graph.set_outputs({graph.value("d")}, graph.outputs());
  });
  const auto result = tune(model, std::vector{call_of(32)}, max_throughput(), with({{"without", without}}));
  EXPECT_EQ(result.report.find("without")->verdict, Verdict::kDropped);
  EXPECT_LT(result.report.find("without")->accuracy->min_cosine, 0.5);
  EXPECT_GT(result.report.find("without")->accuracy->mean_cosine, 0.5);
}

TEST(Tune, TriesNothingAfterTheFirstWin) {
  const auto slow = napping_recipe("Slow", 9), first = napping_recipe("First", 1),
             second = napping_recipe("Second", 0.3);
  const auto result =
      tune(napping_model(3), std::vector{call_of(2)}, first_win(),
           with({{"slow", slow}, {"throwing", throwing_recipe()}, {"first", first}, {"second", second}}));
  EXPECT_EQ(result.report.chosen, "first");
  EXPECT_EQ(result.report.find("slow")->verdict, Verdict::kDropped);
  EXPECT_EQ(result.report.find("throwing")->verdict, Verdict::kFailed);
  EXPECT_EQ(result.report.find("second")->verdict, Verdict::kNotTried);
  EXPECT_EQ(second->prepared, 0);
}

TEST(Tune, OneBackendTriesNoOther) {
  const auto other = napping_recipe("Other", 0.3);
  const auto options = with({{"wanted", napping_recipe("Wanted", 1)}, {"other", other}});
  const auto result = tune(napping_model(3), std::vector{call_of(2)}, one_backend("wanted"), options);
  EXPECT_EQ(result.report.chosen, "wanted");
  EXPECT_EQ(other->prepared, 0);
  EXPECT_EQ(result.report.candidates.size(), 3U);
  expect_error(ErrorCode::kInvalidArgument, {"wonted", "did you mean \"wanted\""},
               [&] { tune(napping_model(), std::vector{call_of(2)}, one_backend("wonted"), options); });
}

TEST(Tune, AsksTheUsersMetric) {
  auto options = with({{"quick", napping_recipe("Quick", 1)}, {"garbage", garbage_recipe()}});
  options.min_cosine = -1;
  options.metric = [](const c10::IValue& expected, const c10::IValue& got) {
    return -(only_tensor(expected) - only_tensor(got)).abs().max().item<double>();
  };
  options.metric_name = "largest difference";
  const auto result = tune(napping_model(3), std::vector{call_of(2)}, metric_budget(-0.01), options);
  EXPECT_EQ(result.report.chosen, "quick");
  EXPECT_EQ(result.report.find("garbage")->verdict, Verdict::kValid);
  EXPECT_LT(*result.report.find("garbage")->accuracy->metric, -0.01);
  EXPECT_EQ(result.report.metric, "largest difference");
}

TEST(Tune, StopsTryingWhenTimeIsOver) {
  std::vector<TuneCandidate> candidates;
  for (int i = 0; i < 6; ++i) {
    candidates.push_back(
        {fmt::format("c{}", i),
         std::make_shared<const ChangingRecipe>(fmt::format("C{}", i), [](GraphModule& module) {
           set_nap(module, 0.5);
           std::this_thread::sleep_for(std::chrono::milliseconds(700));
         })});
  }
  auto options = with(candidates);
  options.time_limit = 3;
  const TestFolder folder;
  options.cache_dir = folder.path.string();
  TuneReport report;
  const double seconds = seconds_of(
      [&] { report = tune(napping_model(2), std::vector{call_of(2)}, max_throughput(), options).report; });
  EXPECT_LT(seconds, 6);
  EXPECT_EQ(report.find("c0")->verdict == Verdict::kNotTried, false);
  EXPECT_EQ(report.find("c5")->verdict, Verdict::kNotTried);
  EXPECT_THAT(report.find("c5")->reason, HasSubstr("time limit of 3 s"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path));  // half a measurement is none
}

TEST(Tune, FewerThanSixRoundsAreNoVerdict) {
  auto options = with({});
  options.candidates = {{"quick", napping_recipe("Quick", 120)}};
  options.time_limit = 0.2;
  expect_error(ErrorCode::kState, {"not measured long enough", "rounds within the time limit of 0.2 s"},
               [&] { tune(napping_model(500), std::vector{call_of(2)}, max_throughput(), options); });
}

TEST(Tune, ABusyMachineIsRefusedAndNothingIsKept) {
  auto options = with({{"quick", napping_recipe("Quick", 1)}});
  options.time_limit = 2;
  const TestFolder folder;
  options.cache_dir = folder.path.string();
  setenv("HALFTONE_BUSY", "always", 1);
  expect_error(ErrorCode::kState, {"this machine is too busy to say", "rounds disturbed"},
               [&] { tune(napping_model(3), std::vector{call_of(2)}, max_throughput(), options); });
  setenv("HALFTONE_BUSY", "ignore", 1);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path));
}

TEST(Tune, NumbersOfARowFollowFromOneRatio) {
  const TuneReport report =
      tune(napping_model(4), std::vector{call_of(2), call_of(4)}, max_throughput(),
           with({{"quick", napping_recipe("Quick", 1)}, {"quicker", napping_recipe("Quicker", 0.6)}}))
          .report;
  const CandidateReport &eager = *report.find("eager"), &fp32 = *report.find("fp32");
  for (const CandidateReport& row : report.candidates) {
    for (size_t shape = 0; shape < 2; ++shape) {
      const ShapeTime& time = row.times.at(shape);
      EXPECT_NEAR(time.median, eager.times[shape].median * time.to_eager, 1e-9) << row.name;
      EXPECT_NEAR(time.to_fp32, time.to_eager / fp32.times[shape].to_eager, 1e-9) << row.name;
      EXPECT_GE(time.runs, 6) << row.name;
      EXPECT_LE(time.low, time.median) << row.name;
      EXPECT_GE(time.high, time.median) << row.name;
    }
    EXPECT_NEAR(row.throughput, std::sqrt(2 / row.times[0].median * 4 / row.times[1].median) * 1e3, 1e-6);
    if (row.verdict != Verdict::kValid) continue;
    EXPECT_LE(row.throughput, report.find(report.chosen)->throughput) << row.name;
  }
  EXPECT_NEAR(eager.times[0].to_fp32, 1 / fp32.times[0].to_eager, 1e-9);
}

TEST(Tune, RefusesAModelThatDrawsRandomNumbers) {
  const auto model = module_from_text(R"(
graph(%x: user "x" f32[2, 8]) {
  %n: f32[2, 8] = aten::bernoulli.p(%x, 0.5)
  %y: f32[2, 8] = aten::add.Tensor(%x, %n)
  return %y
})");
  expect_error(ErrorCode::kUnsupported, {"this model draws random numbers (aten::bernoulli.p)"},
               [&] { tune(model, std::vector{call_of(2)}, max_throughput(), with({})); });
}

TEST(Tune, NeedsSamples) {
  expect_error(ErrorCode::kInvalidArgument, {"samples"}, [] { tune(napping_model(), {}); });
}

TEST(Tune, ReportsProgress) {
  auto options = with({{"quick", napping_recipe("Quick", 0.5)}});
  std::vector<int64_t> done;
  std::vector<std::string> what;
  options.progress = [&](int64_t now, int64_t total, std::string_view text) {
    EXPECT_LE(now, total);
    done.push_back(now);
    what.emplace_back(text);
  };
  tune(napping_model(1), std::vector{call_of(2)}, max_throughput(), options);
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
  EXPECT_THAT(what, testing::Contains("quick"));
  EXPECT_THAT(what, testing::Contains("measuring 2x8"));
}

const char kCounter[] = R"(
graph(%c: buffer "count" f32[2, 8], %x: user "x" f32[2, 8]) {
  %n: f32[2, 8] = halftone_tune_test::nap(%x, 3.0)
  %y: f32[2, 8] = aten::add.Tensor(%c, %n)
  return buffer_mutation "count" %y, %y
})";

TEST(Tune, EveryRunOfAModelWithStateBeginsAnew) {
  const auto model = module_from_text(kCounter, {{"count", at::full({2, 8}, 5.0)}});
  const auto result =
      tune(model, std::vector{call_of(2)}, max_throughput(), with({{"quick", napping_recipe("Quick", 1)}}));
  EXPECT_EQ(result.report.chosen, "quick");
  EXPECT_NEAR(result.report.find("quick")->accuracy->min_cosine, 1, 1e-6);
  EXPECT_TRUE(model->tensor("count").equal(at::full({2, 8}, 5.0)));
  const at::Tensor one = at::full({2, 8}, 1.0);
  EXPECT_EQ(only_tensor(result.backend.infer({one}))[0][0].item<float>(), 6);
  EXPECT_EQ(only_tensor(result.backend.infer({one}))[0][0].item<float>(), 7);
}

TEST(Tune, FindsCandidatesThatForgetTheState) {
  const auto model = module_from_text(kCounter, {{"count", at::full({2, 8}, 5.0)}});
  const auto forgetful = std::make_shared<const ChangingRecipe>("Forgetful", [](GraphModule& module) {
    set_nap(module, 0.5);
    Graph& graph = module.mutable_graph();
    graph.set_outputs({graph.value("n"), graph.value("y")}, graph.outputs());
  });
  const auto result =
      tune(model, std::vector{call_of(2)}, max_throughput(), with({{"forgetful", forgetful}}));
  EXPECT_EQ(result.report.find("forgetful")->verdict, Verdict::kDropped);
  EXPECT_THAT(result.report.find("forgetful")->reason, HasSubstr("cosine"));
}

TEST(Tune, CopiesInputsThatTheModelWrites) {
  const auto model = module_from_text(R"(
graph(%x: user "x" f32[2, 8]) {
  %n: f32[2, 8] = halftone_tune_test::nap(%x, 2.0)
  %y: f32[2, 8] = aten::add.Tensor(%n, 1)
  return input_mutation "x" %y, %n
})");
  const Sample sample = call_of(2);
  const at::Tensor before = sample.args[0].toTensor().clone();
  const auto result =
      tune(model, std::vector{sample}, max_throughput(), with({{"quick", napping_recipe("Quick", 0.5)}}));
  EXPECT_EQ(result.report.chosen, "quick");
  EXPECT_TRUE(sample.args[0].toTensor().equal(before));
}

TEST(Isolation, ACrashIsARow) {
  auto options = with({{"quick", napping_recipe("Fast", 1)},
                       {"crashing", crashing_recipe()},
                       {"throwing", throwing_recipe()},
                       {"unknown", napping_recipe("Unknown", 0.5)}});
  options.isolate = TuneIsolation{{HALFTONE_TEST_TRIAL}, 30};
  options.time_limit = 120;
  const auto result = tune(napping_model(3), std::vector{call_of(2)}, max_throughput(), options);
  EXPECT_EQ(result.report.chosen, "quick");
  EXPECT_EQ(result.report.find("crashing")->verdict, Verdict::kFailed);
  EXPECT_THAT(result.report.find("crashing")->reason, HasSubstr("it crashed (SIGSEGV)"));
  EXPECT_THAT(result.report.find("throwing")->reason, HasSubstr("no kernel for this"));
  EXPECT_EQ(result.report.find("unknown")->verdict, Verdict::kFailed);
  EXPECT_THAT(result.report.find("unknown")->reason, HasSubstr("there is no backend type \"TestUnknown\""));
}

TEST(Isolation, AModelThatCrashesInEagerIsAnErrorAndNotTheEnd) {
  auto model = module_from_text(R"(
graph(%x: user "x" f32[s0, 8]) {
  %y: f32[s0, 8] = halftone_tune_test::crash(%x)  @ "boom" "Crash"
  return %y
})",
                                {});
  model->ranges["s0"] = {1, 64};
  auto options = with({{"quick", napping_recipe("Fast", 1)}});
  options.isolate = TuneIsolation{{HALFTONE_TEST_TRIAL}, 30};
  EXPECT_THAT([&] { tune(model, std::vector{call_of(2)}, max_throughput(), options); },
              testing::ThrowsMessage<Error>(HasSubstr("it crashed (SIGSEGV)")));
}

TEST(Isolation, OneThatHangsIsKilled) {
  auto options = with({{"hanging", hanging_recipe()}});
  options.isolate = TuneIsolation{{HALFTONE_TEST_TRIAL}, 2};
  const auto report = tune(napping_model(2), std::vector{call_of(2)}, max_throughput(), options).report;
  EXPECT_EQ(report.find("hanging")->verdict, Verdict::kFailed);
  EXPECT_THAT(report.find("hanging")->reason, HasSubstr("it took more than 2 s"));
}

TEST(Isolation, AProgramThatIsNotThereOrGivesNoAnswerFailsTheCandidate) {
  auto options = with({{"quick", napping_recipe("Fast", 1)}});
  options.isolate = TuneIsolation{{"/nowhere/to/be/found"}, 5};
  auto report = tune(napping_model(2), std::vector{call_of(2)}, max_throughput(), options).report;
  EXPECT_THAT(report.find("quick")->reason, HasSubstr("could not be started"));
  options.isolate = TuneIsolation{{"true"}, 5};
  report = tune(napping_model(2), std::vector{call_of(2)}, max_throughput(), options).report;
  EXPECT_THAT(report.find("quick")->reason, HasSubstr("gave no answer"));
  options.isolate = TuneIsolation{{"false"}, 5};
  report = tune(napping_model(2), std::vector{call_of(2)}, max_throughput(), options).report;
  EXPECT_THAT(report.find("quick")->reason, HasSubstr("exit code 1"));
}

TEST(RunTrial, AnswersWithTheErrorInJson) {
  EXPECT_THAT(run_trial({}), HasSubstr(R"("ok":false)"));
  EXPECT_THAT(run_trial({"/nowhere.ht", "EagerBackend", "{}", "1"}), HasSubstr(R"("error":)"));
}

TEST(DryRun, RunsNothing) {
  const auto quick = napping_recipe("Quick", 1);
  auto options = with({{"quick", quick}});
  options.isolate = TuneIsolation{{"true"}, 5};
  const TuneDryRun plan =
      dry_run(napping_model(), std::vector{call_of(2), call_of(4)}, latency_budget(5), options);
  EXPECT_EQ(quick->prepared, 0);
  ASSERT_EQ(plan.candidates.size(), 3U);
  EXPECT_EQ(plan.candidates[0].name, "eager");
  EXPECT_TRUE(plan.candidates[1].baseline);
  EXPECT_EQ(plan.candidates[2].backend, "TestQuick()");
  EXPECT_EQ(plan.shapes.size(), 2U);
  EXPECT_FALSE(plan.cached);
  EXPECT_THAT(plan.to_text(), HasSubstr("at most 8 s, each in a child"));
  EXPECT_THAT(plan.to_text(), HasSubstr("size s0 of 1…64"));
  EXPECT_THAT(plan.to_json(), HasSubstr(R"x("strategy": "latency-budget (5 ms)")x"));
}

TEST(Candidates, TheUsualOnes) {
  std::vector<std::string> names;
  for (const TuneCandidate& candidate : default_candidates()) names.push_back(candidate.name);
  EXPECT_THAT(names,
              ElementsAre("eager", "ts", "fp32", "bf16", "int8wo", "int8dq", "int8dq-7bit", "int4wo",
                          "int4wo-int8act", "fp8wo", "fp8dq", "int8static", "int8static-7bit", "autoquant"));
}

TEST(Candidates, CanBeSelected) {
  const auto names = [](const std::vector<TuneCandidate>& list) {
    std::vector<std::string> all;
    for (const TuneCandidate& candidate : list) all.push_back(candidate.name);
    return all;
  };
  EXPECT_THAT(names(select_candidates({"ts", "quant"}, {"int8dq-7bit"})), ElementsAre("ts", "int8dq-7bit"));
  EXPECT_THAT(names(select_candidates({"QuantBackend"}, {"int4weightonly", "int8wo"})),
              ElementsAre("int4wo", "int8wo"));
  EXPECT_THAT(names(select_candidates({"halftone"}, {})), ElementsAre("fp32", "bf16"));
  EXPECT_EQ(select_candidates({}, {}).size(), default_candidates().size());
  expect_error(ErrorCode::kInvalidArgument, {"halftoon", "did you mean \"halftone\""},
               [] { select_candidates({"halftoon"}, {}); });
  expect_error(ErrorCode::kInvalidArgument, {"int8w", "int8wo"}, [] { select_candidates({}, {"int8w"}); });
  EXPECT_THAT(names(select_candidates({"quant"}, {"bf16wo", "int4dq", "int4wo:64", "int4wo:32"})),
              ElementsAre("bf16wo", "int4wo-int8act", "int4wo:64", "int4wo"));
  // What is not quantized is tried always.
  EXPECT_THAT(names(select_candidates({"halftone"}, {"noquant"})), ElementsAre("fp32", "bf16"));
  expect_error(ErrorCode::kUnsupported, {"\"ts\"", "--backends ts"}, [] { select_candidates({}, {"ts"}); });
}

}  // namespace
}  // namespace halftone
