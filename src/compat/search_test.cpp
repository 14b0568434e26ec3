// search_kernel_parameters, graph_cache and readable_kernel_names.
#include "compat/search.h"

#include <ATen/Parallel.h>

#include <map>
#include <thread>

#include "compat/test_models.h"

namespace halftone {
namespace {

using baseline::SearchProblem;
using baseline::SearchSetting;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

/// Models that take as long as the test says, by a clock of its own.
class TimedSearch {
 public:
  TimedSearch(int threads, std::vector<std::string> passes,
              std::function<double(const SearchSetting&)> milliseconds) {
    const auto module = block_model();
    problem.shape = "any";
    problem.threads = threads;
    problem.passes = std::move(passes);
    problem.start = compile(module);
    settings_[problem.start.get()] = {threads, {}};
    problem.make = [this, module](const SearchSetting& setting) {
      auto made = compile(module);
      settings_[made.get()] = setting;
      return made;
    };
    problem.run = [this, milliseconds](const CompiledGraph& model) {
      seconds_ += milliseconds(settings_.at(&model)) / 1e3;
    };
    problem.clock = [this] { return seconds_; };
  }
  SearchProblem problem;

 private:
  std::map<const CompiledGraph*, SearchSetting> settings_;
  double seconds_ = 0;
};

TEST(ParameterSearch, DescendsOneParameterAfterTheOther) {
  TimedSearch timed(4, {"a", "b"}, [](const SearchSetting& setting) {
    return 0.5 + 0.5 * setting.threads + (setting.without == std::vector<std::string>{"b"} ? -0.3 : 0.2);
  });
  const auto result = baseline::search_parameters(timed.problem);
  const SearchReport& report = result.report;
  EXPECT_EQ(report.candidates.at(0).name(), "4 threads");
  EXPECT_EQ(report.candidates.at(report.chosen).name(), "1 thread without b");
  EXPECT_GT(report.candidates[0].milliseconds, report.candidates[report.chosen].milliseconds);
  EXPECT_LT(report.candidates.size(), 12u) << "one direction at a time, not all combinations";
  EXPECT_THAT(report.to_text(), testing::ContainsRegex("1 thread without b +[0-9.]+ +kept"));
}

TEST(ParameterSearch, OnlyAllDirectionsFindWhatNeedsTwoSteps) {
  // Fewer threads do not pay, leaving the pass out does not pay, both together do.
  const auto milliseconds = [](const SearchSetting& setting) {
    const bool both = setting.threads == 1 && !setting.without.empty();
    const bool none = setting.threads == 2 && setting.without.empty();
    return both ? 0.5 : none ? 1.0 : 1.5;
  };
  TimedSearch descent(2, {"a"}, milliseconds);
  EXPECT_EQ(baseline::search_parameters(descent.problem).report.chosen, 0u);
  TimedSearch all(2, {"a"}, milliseconds);
  all.problem.all_directions = true;
  const auto result = baseline::search_parameters(all.problem);
  EXPECT_EQ(result.report.candidates.at(result.report.chosen).name(), "1 thread without a");
  EXPECT_EQ(result.report.candidates.size(), 4u);
}

TEST(ParameterSearch, AWayThatCannotRunIsListed) {
  TimedSearch timed(2, {}, [](const SearchSetting&) { return 0.2; });
  timed.problem.make = [](const SearchSetting&) -> std::shared_ptr<const CompiledGraph> {
    throw Error(ErrorCode::kInternal, "broken on purpose");
  };
  const auto result = baseline::search_parameters(timed.problem);
  EXPECT_EQ(result.report.chosen, 0u);
  EXPECT_EQ(result.report.candidates.at(1).failed, "broken on purpose");
  EXPECT_EQ(result.model, timed.problem.start);
}

/// down(gate(n) · up(n)) of n = norm(x): two linears to join, and rows to quantize in the norm.
std::shared_ptr<GraphModule> gated_model() {
  at::manual_seed(8);
  const char text[] =
      R"(graph(%g: parameter "norm.weight" f32[64], %w0: parameter "gate.weight" f32[96, 64], %w1: parameter "up.weight" f32[96, 64], %w2: parameter "down.weight" f32[64, 96], %x: user "x" f32[s0, 64]) {
  %n: f32[s0, 64] = aten::rms_norm(%x, [64], %g, 1e-05)  @ "norm" "RMSNorm"
  %a: f32[s0, 96] = aten::linear(%n, %w0)  @ "gate" "Linear"
  %b: f32[s0, 96] = aten::linear(%n, %w1)  @ "up" "Linear"
  %p: f32[s0, 96] = aten::mul.Tensor(%a, %b)
  %y: f32[s0, 64] = aten::linear(%p, %w2)  @ "down" "Linear"
  return %y
}
)";
  auto module = module_from_text(text, {{"norm.weight", at::randn({64})},
                                        {"gate.weight", at::randn({96, 64}) / 8},
                                        {"up.weight", at::randn({96, 64}) / 8},
                                        {"down.weight", at::randn({64, 96}) / 8}});
  module->ranges["s0"] = {1, 4096};
  return module;
}

BaselineOptions searching() {
  BaselineOptions options;
  options.search_kernel_parameters = options.search_all_directions = true;
  return options;
}

TEST(BaselineSearch, RunsOnceForEachShapeAndKeepsTheNumbers) {
  const auto module = gated_model();
  quantize_(*module, "int8dq");
  const auto model = baseline_compile(module, searching());
  const auto plain = compile(module);
  const std::vector<c10::IValue> five = {at::randn({5, 64})}, nine = {at::randn({9, 64})};
  for (const auto& inputs : {five, five, nine}) expect_close(model->run(inputs), plain->run(inputs), 1e-5);
  ASSERT_EQ(model->searches().size(), 2u);
  const SearchReport report = model->searches()[0];
  RecordProperty("search", report.to_text());
  EXPECT_EQ(report.shape, "f32[5, 64]");
  EXPECT_EQ(report.candidates.at(0).threads, at::get_num_threads());
  std::vector<std::string> names;
  for (const SearchCandidate& candidate : report.candidates) {
    names.push_back(candidate.name());
    EXPECT_GT(candidate.milliseconds, 0) << candidate.name();
    EXPECT_EQ(candidate.failed, "");
  }
  EXPECT_THAT(names, Contains("1 thread"));
  EXPECT_THAT(names, Contains("1 thread without join_linears"));
  EXPECT_THAT(names, Contains("1 thread without join_linears, quantize_once")) << "all directions";
  EXPECT_THAT(names, Not(Contains(HasSubstr("patches_to_linear")))) << "there are no patches";
  EXPECT_EQ(model->compiled_for(five), model->compiled_for(five));
}

TEST(BaselineSearch, StopsAtTheRecompileLimit) {
  BaselineOptions options = searching();
  options.recompile_limit = 1;
  const auto model = baseline_compile(block_model(), options);
  model->run(block_inputs(3));
  model->run(block_inputs(4));
  EXPECT_EQ(model->searches().size(), 1u);
}

TEST(BaselineSearch, LeavesModelsWithStateAlone) {
  const auto module = module_from_text(R"(graph(%b: buffer "count" f32[2], %x: user "x" f32[2]) {
  %n: f32[2] = aten::add.Tensor(%b, %x)
  return %n, buffer_mutation "count" %n
}
)",
                                       {{"count", at::zeros({2})}});
  const auto model = baseline_compile(module, searching());
  Session session(module, model);
  session.run({at::ones({2})});
  const at::Tensor second = session.run({at::ones({2})}).at(0).toTensor();
  EXPECT_TRUE(at::equal(second, at::full({2}, 2.0))) << "each call counted once";
  ASSERT_EQ(model->searches().size(), 1u);
  EXPECT_THAT(model->searches()[0].not_searched, HasSubstr("writes to its state"));
  EXPECT_THAT(model->searches()[0].to_text(), HasSubstr("not searched"));
}

TEST(BaselineSearch, WrongInputsAreTheCallersError) {
  const auto model = baseline_compile(block_model(), searching());
  expect_error(ErrorCode::kGuard, {}, [&] { model->run({at::zeros({2, 3, 63}), at::zeros({2, 3, 64})}); });
  EXPECT_TRUE(model->searches().empty());
}

TEST(BaselineSearch, SeveralThreadsSearchOnce) {
  const auto model = baseline_compile(block_model(), searching());
  const auto inputs = block_inputs();
  const auto expected = compile(block_model())->run(inputs);
  std::vector<std::thread> threads;
  std::vector<std::vector<c10::IValue>> results(4);
  for (auto& result : results) threads.emplace_back([&] { result = model->run(inputs); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(model->searches().size(), 1u);
  for (const auto& result : results) expect_close(result, expected, 1e-5);
}

BaselineOptions cached() {
  BaselineOptions options;
  options.graph_cache = true;
  return options;
}

TEST(GraphCache, EqualGraphsAreCompiledOnce) {
  const auto inputs = block_inputs();
  const auto first = baseline_compile(block_model(1), cached());
  const auto again = baseline_compile(block_model(1), cached());
  EXPECT_EQ(first->compiled_for(inputs), again->compiled_for(inputs));
  EXPECT_NE(first->compiled_for(inputs), baseline_compile(block_model(7), cached())->compiled_for(inputs))
      << "other weights";
  BaselineOptions others = cached();
  others.epilogue_fusion = false;
  EXPECT_NE(first->compiled_for(inputs), baseline_compile(block_model(1), others)->compiled_for(inputs));
  const auto apart = baseline_compile(block_model(1), {});
  EXPECT_NE(apart->compiled_for(inputs), baseline_compile(block_model(1), {})->compiled_for(inputs)) << "off";
}

TEST(GraphCache, SearchesAreSharedToo) {
  BaselineOptions options = searching();
  options.graph_cache = true;
  const auto first = baseline_compile(block_model(1), options);
  first->run(block_inputs());
  const auto again = baseline_compile(block_model(1), options);
  EXPECT_EQ(again->searches().size(), 1u);
  EXPECT_EQ(first->compiled_for(block_inputs()), again->compiled_for(block_inputs()));
}

TEST(GraphCache, AnotherModelsWeightsAreNotThisOnes) {
  const auto mine = block_model(1), theirs = block_model(1);
  const auto inputs = block_inputs();
  const auto first = baseline_compile(theirs, cached());
  const auto second = baseline_compile(mine, cached());
  const auto expected = compile(mine)->run(inputs);
  expect_close(second->run(inputs), expected, 0);
  for (const auto& [name, tensor] : *theirs->tensors()) tensor.zero_();
  expect_close(second->run(inputs), expected, 0);
  EXPECT_NE(first->compiled_for(inputs), second->compiled_for(inputs));
  EXPECT_NE(baseline_compile(theirs, cached())->compiled_for(inputs), second->compiled_for(inputs));
}

TEST(GraphCache, ForgetsWhatNobodyHolds) {
  auto first = baseline_compile(block_model(1), cached());
  const std::weak_ptr<const CompiledGraph> compiled = first->compiled_for(block_inputs());
  first.reset();
  EXPECT_TRUE(compiled.expired());
}

TEST(ReadableNames, SayWhatStepsDoAndWhere) {
  BaselineOptions options;
  options.readable_kernel_names = true;
  const auto inputs = block_inputs();
  EXPECT_THAT(
      targets_of(baseline_compile(block_model(), options)->report(inputs)),
      testing::ElementsAre("linear+gelu up", "linear+residual down", "layer_norm norm", "linear side"));
  options.epilogue_fusion = false;
  EXPECT_THAT(targets_of(baseline_compile(block_model(), options)->report(inputs)),
              testing::UnorderedElementsAre("linear up", "gelu act", "linear down", "add", "layer_norm norm",
                                            "linear side"));
  const auto quantized = block_model();
  quantize_(*quantized, "int8dq");
  options.epilogue_fusion = true;
  const Profile profile =
      baseline_compile(quantized, options)->profile(inputs, {.runs = 2, .measure_limits = false});
  std::vector<std::string> names;
  for (const ProfiledStep& step : profile.steps) names.push_back(step.target);
  EXPECT_THAT(names, Contains("int8 linear+gelu+quantize up"));
  EXPECT_THAT(chrome_trace(profile), HasSubstr("int8 linear+residual down"));
  EXPECT_THAT(step_table(profile, 100, 20), HasSubstr("layer_norm norm"));
}

}  // namespace
}  // namespace halftone
