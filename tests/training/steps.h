// One training step, and what it leaves: results, gradients, buffers.
#pragma once

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "capture/module/test_support.h"
#include "training/models.h"

namespace halftone {

struct StepResult {
  std::vector<c10::IValue> results, input_gradients;
  std::vector<std::pair<std::string, at::Tensor>> parameter_gradients, buffers;
};

inline std::vector<at::Tensor> tensors_of(const std::vector<c10::IValue>& leaves) {
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& leaf : leaves)
    if (leaf.isTensor() && leaf.toTensor().defined()) tensors.push_back(leaf.toTensor());
  return tensors;
}

/// A sum of the results, each element with another weight, so that no gradient is lost in a symmetry.
inline at::Tensor loss_of(const std::vector<c10::IValue>& results) {
  at::Tensor loss = at::zeros({});
  for (const at::Tensor& result : tensors_of(results)) {
    if (!result.is_floating_point() || !result.requires_grad()) continue;
    const at::Tensor weights = at::linspace(0.5, 1.5, result.numel()).view(result.sizes());
    loss = loss + (result * weights).sum();
  }
  return loss;
}

/// Runs `forward` in place of the model's own, backward included; puts the module back as it was.
inline StepResult training_step(TrainingModel& model, const ForwardFunction& forward, int64_t seed = 5) {
  std::vector<at::Tensor> kept;
  for (const at::Tensor& buffer : model.module->buffers()) kept.push_back(buffer.clone());
  const auto inputs = leaves_of(c10::ivalue::Tuple::create(model.examples));
  model.module->zero_grad();
  for (const at::Tensor& input : tensors_of(inputs)) input.mutable_grad() = at::Tensor();

  torch::manual_seed(static_cast<uint64_t>(seed));
  StepResult step;
  step.results = leaves_of(forward(model.examples));
  loss_of(step.results).backward();
  for (const at::Tensor& input : tensors_of(inputs))
    step.input_gradients.emplace_back(input.grad().defined() ? input.grad().clone() : at::Tensor());
  for (const auto& item : model.module->named_parameters()) {
    const at::Tensor gradient = item.value().grad();
    step.parameter_gradients.emplace_back(item.key(), gradient.defined() ? gradient.clone() : at::Tensor());
  }
  for (const auto& item : model.module->named_buffers())
    step.buffers.emplace_back(item.key(), item.value().clone());
  const at::NoGradGuard no_grad;
  const auto buffers = model.module->buffers();
  for (size_t i = 0; i < kept.size(); ++i) buffers[i].copy_(kept[i]);
  return step;
}

inline void expect_close(const at::Tensor& found, const at::Tensor& expected, const std::string& where) {
  ASSERT_EQ(found.defined(), expected.defined()) << where;
  if (!expected.defined()) return;
  ASSERT_EQ(found.sizes(), expected.sizes()) << where;
  ASSERT_EQ(found.scalar_type(), expected.scalar_type()) << where;
  EXPECT_EQ(found.requires_grad(), expected.requires_grad()) << where;
  EXPECT_TRUE(at::allclose(found.detach(), expected.detach(), 1e-5, 1e-5))
      << where << ": " << (found.detach() - expected.detach()).abs().max().item<float>();
}

inline void expect_same_step(const StepResult& found, const StepResult& expected, const std::string& where) {
  ASSERT_EQ(found.results.size(), expected.results.size()) << where;
  for (size_t i = 0; i < expected.results.size(); ++i) {
    if (!expected.results[i].isTensor()) continue;
    expect_close(found.results[i].toTensor(), expected.results[i].toTensor(),
                 fmt::format("{} result {}", where, i));
  }
  for (size_t i = 0; i < expected.input_gradients.size(); ++i) {
    expect_close(found.input_gradients[i].toTensor(), expected.input_gradients[i].toTensor(),
                 fmt::format("{} gradient of input {}", where, i));
  }
  for (size_t i = 0; i < expected.parameter_gradients.size(); ++i) {
    expect_close(found.parameter_gradients[i].second, expected.parameter_gradients[i].second,
                 where + " gradient of " + expected.parameter_gradients[i].first);
  }
  for (size_t i = 0; i < expected.buffers.size(); ++i)
    expect_close(found.buffers[i].second, expected.buffers[i].second,
                 where + " buffer " + expected.buffers[i].first);
}

}  // namespace halftone
