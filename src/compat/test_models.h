// Shared by the tests of this folder: a block as models have it, and what a compiled model is made of.
#pragma once

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "graph/test_support.h"
#include "halftone/compat/baseline_compile.h"
#include "halftone/quant/quantize.h"

namespace halftone {

/// norm(r + down(gelu(up(x)))), with a third linear of x beside it. Any number of rows.
inline std::shared_ptr<GraphModule> block_model(uint64_t seed = 1) {
  at::manual_seed(seed);
  const char text[] =
      R"(graph(%w0: parameter "up.weight" f32[96, 64], %b0: parameter "up.bias" f32[96], %w1: parameter "down.weight" f32[64, 96], %b1: parameter "down.bias" f32[64], %w2: parameter "side.weight" f32[96, 64], %g: parameter "norm.weight" f32[64], %b: parameter "norm.bias" f32[64], %x: user "x" f32[2, s0, 64], %r: user "r" f32[2, s0, 64]) {
  %u: f32[2, s0, 96] = aten::linear(%x, %w0, %b0)  @ "up" "Linear"
  %a: f32[2, s0, 96] = aten::gelu(%u)  @ "act" "GELU"
  %d: f32[2, s0, 64] = aten::linear(%a, %w1, %b1)  @ "down" "Linear"
  %s: f32[2, s0, 64] = aten::add.Tensor(%r, %d)
  %n: f32[2, s0, 64] = aten::layer_norm(%s, [64], %g, %b, 1e-05)  @ "norm" "LayerNorm"
  %y: f32[2, s0, 96] = aten::linear(%x, %w2)  @ "side" "Linear"
  return %n, %y
}
)";
  auto module = module_from_text(text, {{"up.weight", at::randn({96, 64}) / 8},
                                        {"up.bias", at::randn({96})},
                                        {"down.weight", at::randn({64, 96}) / 8},
                                        {"down.bias", at::randn({64})},
                                        {"side.weight", at::randn({96, 64}) / 8},
                                        {"norm.weight", at::randn({64})},
                                        {"norm.bias", at::randn({64})}});
  module->ranges["s0"] = {1, 4096};
  return module;
}

inline std::vector<c10::IValue> block_inputs(int64_t rows = 5, uint64_t seed = 2) {
  at::manual_seed(seed);
  return {at::randn({2, rows, 64}), at::randn({2, rows, 64})};
}

inline std::vector<std::string> targets_of(const PlanReport& report) {
  std::vector<std::string> targets;
  for (const StepReport& step : report.steps) targets.push_back(step.target);
  return targets;
}

inline size_t count_steps(const PlanReport& report, std::string_view target) {
  size_t found = 0;
  for (const StepReport& step : report.steps) found += step.target == target ? 1 : 0;
  return found;
}

inline void expect_close(const std::vector<c10::IValue>& results, const std::vector<c10::IValue>& expected,
                         double tolerance) {
  ASSERT_EQ(results.size(), expected.size());
  for (size_t i = 0; i < results.size(); ++i) {
    ASSERT_EQ(results[i].toTensor().sizes(), expected[i].toTensor().sizes());
    const bool same = tolerance == 0
                          ? at::equal(results[i].toTensor(), expected[i].toTensor())
                          : at::allclose(results[i].toTensor(), expected[i].toTensor(), tolerance, tolerance);
    EXPECT_TRUE(same) << "result " << i;
  }
}

}  // namespace halftone
