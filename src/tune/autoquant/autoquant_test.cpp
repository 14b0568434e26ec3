// Autoquant as its users call it, on small models.
#include "halftone/tune/autoquant.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/rand.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "halftone/checkpoint/checkpoint.h"
#include "halftone/quant/quantized_tensor.h"
#include "tune/accuracy.h"
#include "tune/autoquant/test_models.h"
#include "tune/autoquant/time_cache.h"
#include "tune/report/fingerprint.h"
#include "tune/submodules.h"
#include "tune/test_support.h"

namespace halftone::aq {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kWide = 256;

size_t count_choice(const AutoquantPlan& plan, const std::string& scheme) {
  return static_cast<size_t>(
      std::count_if(plan.layers.begin(), plan.layers.end(),
                    [&](const AutoquantLayer& layer) { return layer.choice == scheme; }));
}

const AutoquantCandidate& candidate_of(const AutoquantLayer& layer, const std::string& scheme) {
  for (const AutoquantCandidate& candidate : layer.candidates) {
    if (candidate.scheme == scheme) return candidate;
  }
  throw std::runtime_error(scheme + " is no candidate");
}

double min_cosine(const std::shared_ptr<GraphModule>& expected, const std::shared_ptr<GraphModule>& got,
                  const Sample& sample) {
  AccuracyCount count;
  Session a(expected), b(got);
  count.add(a(sample.args, sample.kwargs), b(sample.args, sample.kwargs), {});
  return count.result().min_cosine;
}

TEST(Autoquant, MeasuresEveryLayerAndSaysWhy) {
  at::manual_seed(1);
  clear_autoquant_cache();
  const auto module = block_model(2, kWide);
  const AutoquantPlan plan =
      plan_autoquant(module, std::vector{rows_call(64, kWide), rows_call(64, kWide)}, quick_options());
  ASSERT_EQ(plan.layers.size(), 8U);
  EXPECT_EQ(plan.layers[0].name, "b0.q");
  EXPECT_THAT(plan.layers[0].together, ElementsAre("b0.k", "b0.v"));
  ASSERT_EQ(plan.layers[0].shapes.size(), 1U);
  EXPECT_THAT(plan.layers[0].shapes[0].sizes, ElementsAre(64, kWide));
  EXPECT_EQ(plan.layers[0].shapes[0].calls, 2);
  for (const AutoquantLayer& layer : plan.layers) {
    ASSERT_EQ(layer.candidates.size(), 4U);
    EXPECT_EQ(layer.candidates[0].scheme, "fp32");
    EXPECT_FALSE(layer.reason.empty());
    for (const AutoquantCandidate& candidate : layer.candidates) {
      EXPECT_GT(candidate.milliseconds.value(), 0) << candidate.scheme << candidate.note;
      // What is slower than fp32 is not looked at further.
      EXPECT_EQ(candidate.error.has_value(), candidate.note != "slower than fp32") << candidate.scheme;
      EXPECT_LT(candidate.error.value_or(0), 0.02);
    }
  }
  // q, k and v have one choice.
  EXPECT_EQ(plan.layers[0].choice, plan.layers[2].choice);
  EXPECT_GE(plan.cosine, 0.995);
  EXPECT_FALSE(plan.cpu.empty());
  EXPECT_EQ(plan.model_hash, model_hash(*module));
  // Two groups, the same in both blocks.
  EXPECT_THAT(plan.notes,
              Contains(HasSubstr("Of 2 different layers (those that are alike count once) 2 were measured")));
  EXPECT_EQ(autoquant_cache().size(), 8U);
}

TEST(Autoquant, TheSecondPlanningTakesEverythingFromTheCache) {
  at::manual_seed(2);
  clear_autoquant_cache();
  const TestFolder folder;
  AutoquantOptions options = quick_options();
  options.cache_dir = folder.path.string();
  const auto module = block_model(1, kWide);
  const Samples samples(std::vector{rows_call(16, kWide)});
  const AutoquantPlan first = plan_autoquant(module, samples, options);
  clear_autoquant_cache();  // only the disk remembers
  EXPECT_EQ(plan_autoquant(module, samples, options), first);
  clear_autoquant_cache();
  // Another budget is another plan, but the times are known.
  options.min_cosine = 0.9;
  EXPECT_THAT(plan_autoquant(module, samples, options).notes, Contains(HasSubstr("0 were measured")));
  options.use_cache = false;
  EXPECT_THAT(plan_autoquant(module, samples, options).notes, Contains(HasSubstr("2 were measured")));
  EXPECT_GT(clear_autoquant_cache(options.cache_dir), 0U);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path));
}

TEST(Autoquant, SeveralCalibrationsCountByFrequency) {
  at::manual_seed(3);
  const auto module = block_model(1, kWide);
  AutoquantOptions options = quick_options();
  Autoquant session(ModelSource(module), options);
  EXPECT_EQ(session.marked().size(), 4U);
  expect_error(ErrorCode::kState, {"calibrate()"}, [&] { session.plan(); });
  Session plain(module);
  for (int i = 0; i < 9; ++i) {
    const Sample call = rows_call(i < 8 ? 4 : 128, kWide);
    const at::Tensor got = only_tensor(session.calibrate(call));
    EXPECT_TRUE(got.equal(only_tensor(plain(call.args, {}))));
  }
  const AutoquantPlan plan = session.plan();
  const AutoquantLayer& layer = plan.layers.at(3);
  ASSERT_EQ(layer.shapes.size(), 2U);
  EXPECT_EQ(layer.shapes[0].calls, 8);
  EXPECT_EQ(layer.shapes[1].calls, 1);
  // Eight calls of the small shape and one of the large: the mean is far from the large one's time.
  std::vector<double> times;
  for (const AutoquantCacheEntry& entry : autoquant_cache()) {
    if (entry.scheme == "fp32" && entry.problem.starts_with("linear 256x256, add on f32[4,"))
      times.push_back(entry.milliseconds);
  }
  for (const AutoquantCacheEntry& entry : autoquant_cache()) {
    if (entry.scheme == "fp32" && entry.problem.starts_with("linear 256x256, add on f32[128,"))
      times.push_back(entry.milliseconds);
  }
  ASSERT_EQ(times.size(), 2U);
  EXPECT_NEAR(*layer.candidates[0].milliseconds, (8 * times[0] + times[1]) / 9, 1e-9);
  session.finalize();
  expect_error(ErrorCode::kState, {"after finalize()"}, [&] { session.calibrate(rows_call(4, kWide)); });
}

/// Fewer bits are faster, whatever this machine says.
void pretend_times() {
  const std::map<std::string, double> times = {{"fp32", 8}, {"bf16wo", 4}, {"int8wo", 2}, {"int4wo", 1}};
  TimeCache cache("", true);
  for (const AutoquantCacheEntry& entry : autoquant_cache())
    cache.add(entry.problem, entry.scheme, times.at(entry.scheme));
}

TEST(Autoquant, ATightBudgetGivesLayersBack) {
  at::manual_seed(4);
  clear_autoquant_cache();
  const auto module = block_model(3, kWide);
  const Samples samples(std::vector{rows_call(64, kWide), rows_call(64, kWide)});
  AutoquantOptions options = quick_options();
  options.schemes = {"int4wo", "int8wo", "bf16wo"};
  options.min_layer_cosine = 0.9;
  options.min_cosine = 0.1;
  plan_autoquant(module, samples, options);
  pretend_times();
  options.min_cosine = 0;
  const AutoquantPlan loose = plan_autoquant(module, samples, options);
  const size_t most = count_choice(loose, "int4wo");
  ASSERT_EQ(most, 12U) << loose.to_text();
  options.min_cosine = 1 - (1 - loose.cosine) / 4;
  const AutoquantPlan tight = plan_autoquant(module, samples, options);
  EXPECT_GE(tight.cosine, options.min_cosine);
  EXPECT_LT(count_choice(tight, "int4wo"), most);
  // Given back by steps, not to fp32 at once; and no more than needed.
  EXPECT_EQ(count_choice(tight, "fp32"), 0U) << tight.to_text();
  EXPECT_GT(count_choice(tight, "int8wo"), 0U);
  EXPECT_GT(count_choice(tight, "int4wo"), 0U) << tight.to_text();
  EXPECT_THAT(tight.to_text(), HasSubstr("given back"));
  // The plan really holds it, applied to the model and called with what it was validated with.
  const auto quantized = module->clone();
  if (tight.quantizes()) apply_plan(*quantized, tight);
  EXPECT_GE(min_cosine(module, quantized, samples.calls.back()), options.min_cosine - 1e-4);
  options.min_cosine = 1;
  const AutoquantPlan none = plan_autoquant(module, samples, options);
  EXPECT_FALSE(none.quantizes());
  EXPECT_NEAR(none.cosine, 1, 1e-6);
}

TEST(Autoquant, ALayersBoundRefusesASchemeWithItsCosine) {
  at::manual_seed(5);
  clear_autoquant_cache();
  AutoquantOptions options = quick_options();
  options.schemes = {"int4wo", "int8wo"};
  const auto module = block_model(1, kWide);
  const Samples samples(std::vector{rows_call(32, kWide)});
  plan_autoquant(module, samples, options);
  pretend_times();
  options.min_layer_cosine = 0.9999;
  const AutoquantPlan plan = plan_autoquant(module, samples, options);
  for (const AutoquantLayer& layer : plan.layers) {
    EXPECT_THAT(candidate_of(layer, "int4wo").note, HasSubstr("less than 0.9999"));
    EXPECT_EQ(layer.choice, "int8wo");
    EXPECT_GT(*candidate_of(layer, "int4wo").error, *candidate_of(layer, "int8wo").error);
  }
  // 48 inputs are not a multiple of a group: the last one is shorter.
  const AutoquantPlan odd =
      plan_autoquant(block_model(1, 48), std::vector{rows_call(8, 48)}, quick_options());
  EXPECT_LT(*candidate_of(odd.layers.at(0), "int4wo").error, 0.1);
}

TEST(Autoquant, TheTimeLimitLeavesAPlanThatHolds) {
  at::manual_seed(6);
  clear_autoquant_cache();
  AutoquantOptions options = quick_options();
  options.schemes = {};
  options.final_comparison = true;
  options.time_limit = 0.01;
  const auto start = std::chrono::steady_clock::now();
  const AutoquantPlan plan =
      plan_autoquant(block_model(2, kWide), std::vector{rows_call(64, kWide)}, options);
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 10);
  EXPECT_FALSE(plan.quantizes());
  EXPECT_THAT(plan.notes, Contains(HasSubstr("The time limit of 0.01 s")));
  EXPECT_GE(plan.cosine, 0.995);
}

TEST(Autoquant, TinyLayersStayInFp32AndThePlanSaysSo) {
  at::manual_seed(7);
  AutoquantOptions options;
  options.time_limit = 15;
  const auto module = block_model(1, 32);
  const std::string before = model_hash(*module);
  const AutoquantPlan plan = autoquant(module, std::vector{rows_call(2, 32), rows_call(2, 32)}, options);
  EXPECT_FALSE(plan.quantizes()) << plan.to_text();
  EXPECT_THAT(plan.notes, Contains(HasSubstr("Quantization does not pay here")));
  EXPECT_EQ(model_hash(*module), before);
}

TEST(Autoquant, TheRaceTakesTheFastestAsAWhole) {
  at::manual_seed(8);
  AutoquantOptions options = quick_options();
  options.final_comparison = true;
  options.time_limit = 5;
  const AutoquantPlan plan =
      plan_autoquant(block_model(2, kWide), std::vector{rows_call(64, kWide)}, options);
  if (plan.runs.empty()) {
    EXPECT_FALSE(plan.quantizes());
    return;
  }
  EXPECT_EQ(plan.runs[0].name, "fp32");
  EXPECT_DOUBLE_EQ(plan.runs[0].relative, 1);
  const auto chosen =
      std::find_if(plan.runs.begin(), plan.runs.end(), [](const AutoquantRun& run) { return run.chosen; });
  ASSERT_NE(chosen, plan.runs.end());
  EXPECT_TRUE(chosen->holds);
  EXPECT_EQ(chosen->min_cosine, plan.cosine);
  if (chosen != plan.runs.begin()) {
    for (const AutoquantRun& run : plan.runs) EXPECT_LE(chosen->milliseconds, run.milliseconds);
  }
}

TEST(Autoquant, ReplayGivesTheSameBytes) {
  at::manual_seed(9);
  const auto module = block_model(2, kWide);
  AutoquantOptions options = quick_options();
  const auto a = module->clone(), b = module->clone();
  const AutoquantPlan plan = autoquant(a, std::vector{rows_call(64, kWide)}, options);
  if (plan.quantizes()) apply_plan(*b, AutoquantPlan::from_json(plan.to_json(), "plan.json"));
  EXPECT_EQ(model_hash(*a), model_hash(*b));
  EXPECT_EQ(model_hash(*a) != model_hash(*module), plan.quantizes());
}

TEST(Autoquant, TakesArgumentsByName) {
  at::manual_seed(10);
  const auto module = block_model(1, kWide);
  CallSpec call = module->call_spec();
  call.kwargs.children = std::move(call.args.children);
  call.kwargs.keys = {"x"};
  call.args.children.clear();
  const auto named = std::make_shared<GraphModule>(module->graph().clone(), *module->tensors(), call);
  named->ranges = module->ranges;
  const Sample sample{{}, {{"x", at::randn({8, kWide})}}};
  const AutoquantPlan plan = autoquant(named, std::vector{sample, sample}, quick_options());
  EXPECT_EQ(plan.layers.size(), 4U);
  EXPECT_EQ(plan.layers[0].shapes.at(0).calls, 2);
}

struct TwoPaths : torch::nn::Module {
  TwoPaths()
      : up(register_module("up", torch::nn::Linear(kWide, 2 * kWide))),
        down(register_module("down", torch::nn::Linear(2 * kWide, kWide))),
        never(register_module("never", torch::nn::Linear(kWide, kWide))) {
    eval();
  }
  at::Tensor forward(const at::Tensor& x) { return down(up(x).relu()); }
  torch::nn::Linear up, down, never;
};

ModelSource source_of(const std::shared_ptr<TwoPaths>& module) {
  return {module, [module](const std::vector<c10::IValue>& args) -> c10::IValue {
            return module->forward(args.at(0).toTensor());
          }};
}

TEST(AutoquantModule, LayersThatNobodyCallsAreAnErrorOrStayAsTheyAre) {
  at::manual_seed(11);
  const auto module = std::make_shared<TwoPaths>();
  const Samples samples(std::vector{rows_call(64, kWide), rows_call(32, kWide), rows_call(64, kWide)});
  AutoquantOptions options = quick_options();
  expect_error(ErrorCode::kInvalidArgument, {"did not see 1 of 3 layers", "never"},
               [&] { autoquant(source_of(module), samples, options); });
  options.error_on_unseen = false;
  const AutoquantPlan plan = autoquant(source_of(module), samples, options);
  ASSERT_EQ(plan.layers.size(), 3U);
  EXPECT_EQ(plan.layers[2].name, "never");
  EXPECT_EQ(plan.layers[2].choice, "fp32");
  EXPECT_EQ(plan.layers[2].reason, "not seen in calibration");
  EXPECT_TRUE(plan.layers[2].shapes.empty());
  EXPECT_EQ(plan.layers[0].shapes.size(), 2U);
}

TEST(AutoquantModule, IsQuantizedInPlace) {
  at::manual_seed(12);
  const auto module = std::make_shared<TwoPaths>();
  AutoquantOptions options = quick_options();
  options.exclude = "never";
  const Samples samples(std::vector{rows_call(64, kWide)});
  const at::Tensor x = samples.calls[0].args[0].toTensor();
  const at::NoGradGuard no_grad;
  const at::Tensor before = module->forward(x);
  const AutoquantPlan plan = autoquant(source_of(module), samples, options);
  EXPECT_EQ(is_quantized_tensor(module->up->weight), plan.layers.at(0).choice != "fp32");
  EXPECT_FALSE(is_quantized_tensor(module->never->weight));
  const at::Tensor after = module->forward(x);
  EXPECT_GE(
      (before * after).sum().item<double>() / before.norm().item<double>() / after.norm().item<double>(),
      0.995);
}

TEST(AutoquantModule, WithoutALinearIsNotAutoquantizable) {
  struct Plain : torch::nn::Module {};
  const auto module = std::make_shared<Plain>();
  expect_error(
      ErrorCode::kInvalidArgument, {"NotAutoquantizable: found no autoquantizable layers in model", "Plain"},
      [&] {
        Autoquant(ModelSource(module, [](const std::vector<c10::IValue>& args) { return args.at(0); }));
      });
}

TEST(Autoquant, ChangesNoSettingOfTheProcess) {
  at::manual_seed(13);
  const auto module = block_model(1, kWide);
  const Samples samples(std::vector{rows_call(16, kWide)});
  const int threads = at::get_num_threads();
  const bool grad = at::GradMode::is_enabled();
  const auto dtype = at::get_default_dtype();
  at::manual_seed(99);
  const at::Tensor expected = at::rand({4});
  at::manual_seed(99);
  AutoquantOptions options = quick_options();
  options.final_comparison = true;
  options.time_limit = 5;
  autoquant(module, samples, options);
  EXPECT_TRUE(at::rand({4}).equal(expected));
  EXPECT_EQ(at::get_num_threads(), threads);
  EXPECT_EQ(at::GradMode::is_enabled(), grad);
  EXPECT_EQ(at::get_default_dtype(), dtype);
}

TEST(Autoquant, RefusesOptionsThatMakeNoSense) {
  const auto module = block_model(1, 32);
  const auto with = [&](auto change) {
    AutoquantOptions options;
    change(options);
    Autoquant(ModelSource(module), options);
  };
  expect_error(ErrorCode::kInvalidArgument, {"int8w", "int8wo"},
               [&] { with([](AutoquantOptions& options) { options.schemes = {"int8w"}; }); });
  expect_error(ErrorCode::kInvalidArgument, {"time limit"},
               [&] { with([](AutoquantOptions& options) { options.time_limit = 0; }); });
  expect_error(ErrorCode::kInvalidArgument, {"from 0 to 1, not 2"},
               [&] { with([](AutoquantOptions& options) { options.min_cosine = 2; }); });
  expect_error(ErrorCode::kInvalidArgument, {"needs samples"}, [&] { autoquant(module); });
}

TEST(AutoquantBackend, PlansOnceAndIsLoadedAsItWas) {
  at::manual_seed(14);
  const TestFolder folder;
  const auto module = block_model(1, kWide);
  const auto recipe = autoquant_backend_recipe(
      {.schemes = {"int8wo"}, .min_cosine = 0.99, .time_limit = 10, .final_comparison = false});
  EXPECT_EQ(recipe->config(), R"({"least_cosine":0.99,"race":false,"schemes":["int8wo"],"time_limit":10.0})");
  EXPECT_EQ(make_backend_recipe("AutoquantBackend", recipe->config())->config(), recipe->config());
  EXPECT_EQ(recipe->describe_config(), "schemes=[int8wo], least_cosine=0.99, time_limit=10, race=false");
  Backend backend(recipe);
  const Sample sample = rows_call(64, kWide);
  backend.build(module, {}, {sample});
  const at::Tensor answer = only_tensor(backend.infer(sample.args));
  const std::string path = (folder.path / "model.ht").string();
  save(backend, path);
  Backend loaded = load(path);
  loaded.deploy();
  EXPECT_TRUE(only_tensor(loaded.infer(sample.args)).equal(answer));
  expect_error(ErrorCode::kInvalidArgument, {"race must be true or false"},
               [] { make_backend_recipe("AutoquantBackend", R"({"race": 1})"); });
  expect_error(ErrorCode::kInvalidArgument, {"there is no field \"scheme\"", "schemes"},
               [] { make_backend_recipe("AutoquantBackend", R"({"scheme": []})"); });
}

TEST(AutoquantBackend, IsACandidateOfTheTuner) {
  at::manual_seed(15);
  TuneOptions options;
  options.time_limit = 15;
  options.confidence = 0.1;
  options.candidates = select_candidates({"autoquant"}, {"autoquant"});
  ASSERT_EQ(options.candidates.size(), 1U);
  const TuneResult result =
      tune(block_model(1, kWide), std::vector{rows_call(64, kWide)}, max_throughput(), options);
  const CandidateReport* row = result.report.find("autoquant");
  ASSERT_NE(row, nullptr);
  EXPECT_NE(row->verdict, Verdict::kFailed) << row->reason;
  EXPECT_GE(row->accuracy.value().min_cosine, 0.995);
}

}  // namespace
}  // namespace halftone::aq
