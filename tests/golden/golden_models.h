// The models behind the golden files: made of formulas, so that they are the same on every machine and for
// ever.
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <memory>
#include <string>

#include "halftone/graph/graph_module.h"

namespace halftone::golden {

constexpr int64_t kInputs = 64;
constexpr int64_t kOutputs = 8;

/// Multiples of 1/16 in [-2, 2): exact in every floating type and in every order of addition.
inline at::Tensor pattern(at::IntArrayRef sizes, int64_t seed) {
  const int64_t count = c10::multiply_integers(sizes);
  return (at::arange(count, at::kLong) * 37 + seed).remainder(64).sub(32).to(at::kFloat).div(16).view(sizes);
}

inline at::Tensor input() {
  return pattern({3, kInputs}, 5);
}

/// y = relu(x · wᵀ + b) with a dynamic batch.
inline std::shared_ptr<GraphModule> graph() {
  auto parsed = parse_graph(
      R"(graph(%w: parameter "fc.weight" f32[8, 64] grad, %b: parameter "fc.bias" f32[8] grad, %x: user "x" f32[s0, 64]) {
  %y: f32[s0, 8] = aten::linear(%x, %w, %b) @ "fc" "torch.nn.modules.linear.Linear"
  %z: f32[s0, 8] = aten::relu(%y)
  return %z
})");
  CallSpec call;
  call.args = {TreeSpec::Kind::kTuple, "builtins.tuple", {}, {TreeSpec::leaf()}};
  call.kwargs = {TreeSpec::Kind::kDict, "builtins.dict", {}, {}};
  auto module = std::make_shared<GraphModule>(
      std::move(parsed),
      TensorMap{{"fc.weight", pattern({kOutputs, kInputs}, 1).set_requires_grad(true)},
                {"fc.bias", pattern({kOutputs}, 2).set_requires_grad(true)}},
      std::move(call));
  module->ranges["s0"] = {1, 64};
  module->sample_inputs = {input()};
  module->notes = {"a golden file"};
  return module;
}

/// The same as a C++ module, its weights not yet set.
inline torch::nn::Sequential module() {
  return torch::nn::Sequential(torch::nn::Linear(kInputs, kOutputs));
}

}  // namespace halftone::golden
