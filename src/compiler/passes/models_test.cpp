// All passes over exported models: nothing breaks, nothing changes but the time. Skipped where the models are
// not there.
#include <filesystem>

#include "compiler/passes/test_support.h"
#include "halftone/capture/capture.h"

namespace halftone::compiler {
namespace {

std::vector<c10::IValue> clone_inputs(const GraphModule& module) {
  std::vector<c10::IValue> inputs;
  for (const c10::IValue& input : module.sample_inputs)
    inputs.push_back(input.isTensor() ? c10::IValue(input.toTensor().clone()) : input);
  return inputs;
}

Rewritten rewrite_module(const GraphModule& module) {
  Rewritten result;
  result.before = module.graph().clone();
  result.after = module.graph().clone();
  result.tensors_before = result.tensors = *module.tensors();
  run_passes(*result.after, result.tensors, module.ranges, {}, result.log);
  return result;
}

bool close(const at::Tensor& a, const at::Tensor& e) {
  if (a.sizes() != e.sizes() || a.scalar_type() != e.scalar_type()) return false;
  if (!a.is_floating_point()) return at::equal(a, e);
  const double tolerance = a.scalar_type() == at::kFloat || a.scalar_type() == at::kDouble ? 2e-4 : 2e-2;
  return at::allclose(a, e, tolerance, tolerance, /*equal_nan=*/true);
}

TEST(Models, WholeZooGivesTheSameResults) {
  const std::filesystem::path zoo = HALFTONE_ZOO;
  if (!std::filesystem::exists(zoo)) GTEST_SKIP() << "no zoo: tests/models/export_zoo.py makes it";
  size_t checked = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(zoo)) {
    if (entry.path().extension() != ".pt2") continue;
    SCOPED_TRACE(entry.path().filename().string());
    const auto module = load_pt2(entry.path().string());
    const Rewritten graphs = rewrite_module(*module);
    if (module->sample_inputs.empty()) continue;
    bool random = false;
    for (const auto& node : graphs.before->nodes())
      random = random || node->target().starts_with("aten::rand");
    if (random) continue;
    const auto expected = run_graph(graphs.before, graphs.tensors_before, clone_inputs(*module));
    std::vector<c10::IValue> actual;
    ASSERT_NO_THROW(actual = run_graph(graphs.after, graphs.tensors, clone_inputs(*module))) << graphs.text();
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i) {
      if (!expected[i].isTensor()) continue;
      EXPECT_TRUE(close(actual[i].toTensor(), expected[i].toTensor())) << "output " << i;
    }
    ++checked;
  }
  EXPECT_GT(checked, 0);
}

TEST(Models, MiniLmIsFusedThroughout) {
  const std::string path = HALFTONE_MINILM;
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no MiniLM: scripts/export_minilm.py makes it";
  const auto module = load_pt2(path);
  const Rewritten graphs = rewrite_module(*module);
  EXPECT_EQ(graphs.count("halftone::attention"), 6);
  EXPECT_EQ(graphs.count("aten::scaled_dot_product_attention"), 0);
  EXPECT_EQ(graphs.count("halftone::fused_linear"),
            24);  // QKV, attention's output, two of the feed-forward; six times
  EXPECT_EQ(graphs.count("aten::linear"), 0);
  EXPECT_EQ(graphs.count("aten::gelu"), 0);
  EXPECT_EQ(graphs.count("halftone::norm"), 13);
  EXPECT_EQ(graphs.count("aten::layer_norm"), 0);
  EXPECT_EQ(graphs.count("aten::add.Tensor"), 2);  // of the embeddings, one of them broadcast over the batch
  size_t joined = 0;
  for (const auto& node : graphs.after->nodes()) {
    if (node->is("halftone::fused_linear") && node->output()->meta()->sizes.back().as_constant() == 1152)
      ++joined;
  }
  EXPECT_EQ(joined, 6);
  const auto expected = run_graph(graphs.before, graphs.tensors_before, clone_inputs(*module));
  const auto actual = run_graph(graphs.after, graphs.tensors, clone_inputs(*module));
  for (size_t i = 0; i < actual.size(); ++i)
    EXPECT_TRUE(at::allclose(actual[i].toTensor(), expected[i].toTensor(), 1e-4, 1e-4));
}

}  // namespace
}  // namespace halftone::compiler
