// Shared by the tests of this folder: reference graphs from text, lowered, and run against each other.
#pragma once

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/test_support.h"
#include "halftone/ptq/lower.h"
#include "quant/ptq/quantize_op.h"

namespace halftone {

inline at::Tensor random_weight(at::IntArrayRef sizes, int64_t limit = 127) {
  return at::randint(-limit, limit + 1, sizes, at::kChar);
}
inline at::Tensor random_scale(int64_t n) {
  return at::rand({n}) * 0.01 + 0.001;
}
inline at::Tensor zero_points(int64_t n) {
  return at::zeros({n}, at::kInt);
}

/// Parses a reference graph. The operators of ptq must be linked for it.
inline std::shared_ptr<GraphModule> reference_module(std::string_view text, TensorMap tensors = {}) {
  ops::dequantize_per_tensor(at::zeros({1}, at::kByte), 1.0, 0);
  return module_from_text(text, std::move(tensors));
}

inline size_t count_nodes(const Graph& graph, std::string_view target) {
  size_t found = 0;
  for (const auto& node : graph.nodes()) found += node->is(target) ? 1 : 0;
  return found;
}

/// How far the lowered graph's results are from the reference's, in steps of `step`.
struct Difference {
  double largest = 0;
  int64_t differing = 0;  ///< elements that are not within a thousandth of a step
  int64_t elements = 0;
};

inline Difference compare_runs(const std::shared_ptr<GraphModule>& reference,
                               const std::shared_ptr<GraphModule>& lowered,
                               const std::vector<c10::IValue>& inputs, double step) {
  const at::Tensor expected = Session(reference).run(inputs).at(0).toTensor();
  const at::Tensor actual = Session(lowered).run(inputs).at(0).toTensor();
  EXPECT_EQ(actual.sizes(), expected.sizes());
  EXPECT_EQ(actual.strides(), expected.strides());
  EXPECT_EQ(actual.scalar_type(), expected.scalar_type());
  const at::Tensor steps = (actual.to(at::kDouble) - expected.to(at::kDouble)).abs() / step;
  return {steps.numel() == 0 ? 0 : steps.max().item<double>(), steps.gt(1e-3).sum().item<int64_t>(),
          steps.numel()};
}

/// Lowers the text; expects nothing kept, results within one step, and at most one element in `rarity` that
/// differs at all.
inline LowerResult expect_lowered(std::string_view text, const TensorMap& tensors,
                                  const std::vector<c10::IValue>& inputs, double step, int64_t rarity = 100) {
  const auto reference = reference_module(text, tensors);
  const LowerResult result = lower(*reference);
  EXPECT_TRUE(result.report.kept.empty()) << result.report.to_text();
  const Difference difference = compare_runs(reference, result.module, inputs, step);
  EXPECT_LE(difference.largest, 1.001) << print_graph(result.module->graph());
  EXPECT_LE(difference.differing, difference.elements / rarity) << "of " << difference.elements;
  return result;
}

}  // namespace halftone
