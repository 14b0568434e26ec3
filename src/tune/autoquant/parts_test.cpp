// The parts of autoquant by themselves: marks, neighbourhoods, problems, recording, giving back, the cache.
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <set>

#include "quant/weight/refusing_config_test_support.h"
#include "tune/autoquant/budget_search.h"
#include "tune/autoquant/group_costs.h"
#include "tune/autoquant/layer_error.h"
#include "tune/autoquant/recorder.h"
#include "tune/autoquant/relax_budget.h"
#include "tune/autoquant/sample_keeper.h"
#include "tune/autoquant/test_models.h"
#include "tune/autoquant/time_cache.h"
#include "tune/autoquant/time_problem.h"
#include "tune/test_support.h"

namespace halftone::aq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kWidth = 64;

std::vector<std::string> names_of(const MarkedModel& model, const Group& group) {
  std::vector<std::string> names;
  for (const size_t layer : group.layers) names.push_back(model.layers[layer].info.name);
  return names;
}

TEST(AutoquantMarks, LinearsOfOneValueAreOneGroup) {
  at::manual_seed(1);
  const MarkedModel model = mark(*block_model(2, kWidth), "", "", "Blocks");
  ASSERT_EQ(model.groups.size(), 4U);
  EXPECT_THAT(names_of(model, model.groups[0]), ElementsAre("b0.q", "b0.k", "b0.v"));
  EXPECT_THAT(names_of(model, model.groups[1]), ElementsAre("b0.o"));
  EXPECT_EQ(model.weights, 8 * kWidth * kWidth);
  const MarkedModel some = mark(*block_model(2, kWidth), "b0.*", ".*q", "Blocks");
  ASSERT_EQ(some.groups.size(), 2U);
  EXPECT_THAT(names_of(some, some.groups[0]), ElementsAre("b0.k", "b0.v"));
  expect_error(ErrorCode::kInvalidArgument, {"include pattern \"c.*\" matches none"},
               [] { mark(*block_model(1, kWidth), "c.*", "", "Blocks"); });
}

TEST(AutoquantMarks, NoLayerIsAnErrorWithTheModelsType) {
  const auto empty =
      module_from_text("graph(%x: user \"x\" f32[2]) {\n  %y: f32[2] = aten::relu(%x)\n  return %y\n}\n");
  expect_error(ErrorCode::kInvalidArgument,
               {"NotAutoquantizable: found no autoquantizable layers in model Empty"},
               [&] { mark(*empty, "", "", "Empty"); });
}

/// Everything recorded of a model that was called with these rows.
struct Recorded {
  Recorded(const std::shared_ptr<GraphModule>& module, const std::vector<int64_t>& rows)
      : model(mark(*module, "", "", "Blocks")), recorder(model, 0) {
    Session session(model.module);
    for (const int64_t count : rows) recorder.run(session, rows_call(count, kWidth));
  }
  MarkedModel model;
  Recorder recorder;
};

TEST(AutoquantProblems, EqualOnesAreEqualWhicheverLayerTheyComeFrom) {
  at::manual_seed(2);
  const Recorded recorded(block_model(3, kWidth), {4, 4, 9});
  std::set<std::string> keys;
  for (size_t g = 0; g < recorded.model.groups.size(); ++g) {
    for (const SiteShape& shape : recorded.recorder.shapes(g, 0))
      keys.insert(cut_out(recorded.model, recorded.recorder.neighbourhood(g, 0), shape.seen).key);
  }
  // Two groups a block, two shapes.
  ASSERT_EQ(keys.size(), 4U);
  EXPECT_THAT(*keys.begin(),
              HasSubstr("layer_norm, linear 192x64 (3 joined) on f32[4, 64] beside 65536 weights #"));
  EXPECT_THAT(*keys.rbegin(), HasSubstr("linear 64x64, add on f32[9, 64], f32[9, 64]"));
}

TEST(AutoquantProblems, DoWhatTheModelDoes) {
  at::manual_seed(3);
  const Recorded recorded(block_model(1, kWidth), {5});
  const Problem problem = cut_out(recorded.model, recorded.recorder.neighbourhood(1, 0),
                                  recorded.recorder.shapes(1, 0).at(0).seen);
  Session session(problem.module);
  const at::Tensor got = session.run(problem.inputs).at(0).toTensor();
  const at::Tensor x = problem.inputs.at(0).toTensor(), residual = problem.inputs.at(1).toTensor();
  const at::Tensor weight = recorded.model.module->tensor("b0.o.weight");
  // Which of the inputs is multiplied: the first that the nodes read.
  EXPECT_TRUE(got.allclose(x.matmul(weight.t()) + residual, 1e-4, 1e-4));
  EXPECT_EQ(problem.weights, kWidth * kWidth);
}

TEST(AutoquantProblems, AreTimedWithEverySchemeAndRefusalsAreNotes) {
  at::manual_seed(4);
  const Recorded recorded(block_model(1, kWidth), {5});
  const Problem problem = cut_out(recorded.model, recorded.recorder.neighbourhood(0, 0),
                                  recorded.recorder.shapes(0, 0).at(0).seen);
  const AutoquantScheme refused{"refusing", refusing_config()};
  const auto times =
      time_problem(problem, {autoquant_scheme("fp32"), autoquant_scheme("int8dq"), refused}, 1 << 20, 0.1);
  ASSERT_EQ(times.size(), 3U);
  EXPECT_GT(times[0].milliseconds.value(), 0);
  EXPECT_GT(times[1].milliseconds.value(), 0);
  EXPECT_FALSE(times[2].milliseconds);
  EXPECT_THAT(times[2].note, HasSubstr("cannot have the format"));
}

TEST(AutoquantRecorder, CountsShapesAndKeepsBoundedRows) {
  at::manual_seed(5);
  std::vector<int64_t> rows(50, 40);
  rows.insert(rows.end(), 10, 7);
  const Recorded recorded(block_model(1, kWidth), rows);
  EXPECT_EQ(recorded.recorder.calls(), 60);
  const auto shapes = recorded.recorder.shapes(0, 0);
  ASSERT_EQ(shapes.size(), 2U);
  EXPECT_EQ(shapes[0].calls, 50);
  EXPECT_EQ(shapes[1].calls, 10);
  const auto& samples = recorded.recorder.rows(recorded.model.groups[0].sites[0].linears[0]);
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples[0].rows.size(0), 128);
  EXPECT_EQ(samples[0].filled, 128);
  EXPECT_EQ(samples[0].offered, 2000);
  EXPECT_EQ(samples[1].filled, 70);
  // Of layer-normed rows: none is empty, and all are of one length.
  EXPECT_NEAR(samples[0].rows.norm(2, 1).min().item<double>(), 8, 0.1);
}

TEST(AutoquantErrors, FourBitsHurtMoreThanEightAndFp32NotAtAll) {
  at::manual_seed(6);
  const Recorded recorded(block_model(1, kWidth), {32});
  const GraphLayer& layer = recorded.model.layers[0];
  const double four = layer_error(recorded.model, recorded.recorder, layer, "int4wo").error.value();
  const double eight = layer_error(recorded.model, recorded.recorder, layer, "int8wo").error.value();
  EXPECT_GT(four, 1e-3);
  EXPECT_LT(four, 2e-2);
  EXPECT_GT(eight, 1e-7);
  EXPECT_LT(eight, 1e-4);
  const LayerError refused = layer_error(recorded.model, recorded.recorder, layer, refusing_config());
  EXPECT_FALSE(refused.error);
  EXPECT_EQ(refused.refusal, "no");
  // A group of more inputs than there are is one for all of them.
  const LayerError one =
      layer_error(recorded.model, recorded.recorder, layer, Int4WeightOnlyConfig{.group_size = 128});
  EXPECT_GT(one.error.value(), four);
}

TEST(AutoquantFrontier, KeepsWhatIsFasterOrMoreExact) {
  const std::vector<Option> options = {{0, 10, 0}, {1, 5, 0.01}, {2, 6, 0.02}, {3, 4.99, 0.03}, {4, 3, 0.05}};
  const std::vector<Option> kept = frontier(options, 0.015);
  ASSERT_EQ(kept.size(), 3U);
  EXPECT_EQ(kept[0].scheme, 4U);
  EXPECT_EQ(kept[1].scheme, 1U);  // 3 gains nothing over it, 2 is worse in both
  EXPECT_EQ(kept[2].scheme, 0U);
  EXPECT_EQ(frontier({{0, 1, 0}, {1, 2, 0.1}}, 0.015).size(), 1U);
}

TEST(AutoquantGiveBack, TakesTheMostHarmfulStepFirst) {
  BudgetProblem problem;
  problem.frontiers = {{{2, 1, 0.02}, {1, 2, 0.001}, {0, 4, 0}}, {{2, 1, 0.02}, {1, 2, 0.001}, {0, 4, 0}}};
  problem.harm = {0.1, 1};
  EXPECT_THAT(relax_budget(problem, 1, RelaxOrder::kMostHarmful), ElementsAre(0, 0));
  EXPECT_THAT(relax_budget(problem, 0.01, RelaxOrder::kMostHarmful), ElementsAre(0, 1));
  EXPECT_THAT(relax_budget(problem, 0.01, RelaxOrder::kMostForTheTime), ElementsAre(0, 1));
  EXPECT_THAT(relax_budget(problem, 0.0015, RelaxOrder::kMostHarmful), ElementsAre(1, 1));
  EXPECT_THAT(relax_budget(problem, 0, RelaxOrder::kMostHarmful), ElementsAre(2, 2));
  EXPECT_DOUBLE_EQ(predicted_time(problem, {0, 1}), 3);
  EXPECT_DOUBLE_EQ(predicted_error(problem, {0, 1}), 0.1 * 0.02 + 0.001);
}

TEST(AutoquantGiveBack, TakesAgainWhatTurnsOutNotToBeNeeded) {
  BudgetProblem problem;
  // The first is the most harmful by a hair, but one step of the second is enough.
  problem.frontiers = {{{1, 1, 0.010}, {0, 9, 0}}, {{1, 1, 0.011}, {0, 2, 0}}};
  problem.harm = {1.2, 1};
  EXPECT_THAT(relax_budget(problem, 0.0125, RelaxOrder::kMostHarmful), ElementsAre(1, 0));
  EXPECT_THAT(relax_budget(problem, 0.0125, RelaxOrder::kMostForTheTime), ElementsAre(0, 1));
}

TEST(AutoquantSamples, AreKeptByShapeWhateverTheirNumber) {
  SampleKeeper keeper;
  for (int i = 0; i < 100; ++i) keeper.add(keeper.copy(rows_call(i % 10 == 0 ? 3 : 2, 4)));
  EXPECT_EQ(keeper.calls(), 100);
  EXPECT_EQ(keeper.samples().size(), 10U);
  EXPECT_EQ(keeper.calls_of_shape(rows_call(2, 4)), 90);
  EXPECT_EQ(keeper.weight_of(rows_call(2, 4)), 18);
  EXPECT_EQ(keeper.calls_of_shape(rows_call(9, 4)), 0);
}

TEST(AutoquantCache, IsInMemoryAndOnDiskVisibleAndClearable) {
  clear_autoquant_cache();
  const TestFolder folder;
  const std::string dir = folder.path.string();
  {
    TimeCache cache(dir, true);
    EXPECT_FALSE(cache.find("p", "int8wo"));
    cache.add("p", "int8wo", 1.5);
    EXPECT_EQ(cache.find("p", "int8wo"), 1.5);
    cache.save();
  }
  EXPECT_EQ(TimeCache("", true).find("p", "int8wo"), 1.5);
  EXPECT_FALSE(TimeCache("", false).find("p", "int8wo"));
  EXPECT_EQ(clear_autoquant_cache(), 1U);  // of memory alone
  EXPECT_TRUE(autoquant_cache().empty());
  const auto entries = autoquant_cache(dir);
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].problem, "p");
  EXPECT_EQ(entries[0].machine, machine_text());
  EXPECT_EQ(TimeCache(dir, true).find("p", "int8wo"), 1.5);
  EXPECT_EQ(clear_autoquant_cache(dir), 1U);
  EXPECT_TRUE(autoquant_cache(dir).empty());
  EXPECT_FALSE(TimeCache(dir, true).find("p", "int8wo"));
}

TEST(AutoquantCache, ADamagedFileIsMeasuredAnew) {
  clear_autoquant_cache();
  const TestFolder folder;
  const std::string dir = folder.path.string();
  std::ofstream(folder.path / "autoquant-times.json")
      << R"({"format": "halftone-autoquant-times", "times": [{)";
  TimeCache cache(dir, true);
  EXPECT_FALSE(cache.find("p", "s"));
  cache.add("p", "s", 2);
  cache.save();
  EXPECT_EQ(autoquant_cache(dir).size(), 1U);
  const std::string hash(64, 'a');
  store_plan(dir, hash, "{}");
  clear_autoquant_cache();
  EXPECT_EQ(find_plan(dir, hash), "{}");
  clear_autoquant_cache();
  const auto file = folder.path / ("autoquant-plan-" + hash.substr(0, 32) + ".json");
  ASSERT_TRUE(std::filesystem::exists(file));
  std::ofstream(file) << R"({"format": "halftone-autoquant-plan-cache", "key": "other"})";
  EXPECT_FALSE(find_plan(dir, hash));
}

}  // namespace
}  // namespace halftone::aq
