#include "autograd/aot_node.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/functions/utils.h>

#include "base/errors.h"
#include "capture/module/tracing/geometry.h"
#include "graph/aten/autocast_state.h"

namespace halftone {
namespace {

using torch::autograd::variable_list;

/// The gradient as the graph was traced: defined, and with those strides.
at::Tensor as_traced(const at::Tensor& gradient, const TensorMeta& meta) {
  const std::vector<int64_t> sizes = constant_sizes(meta.sizes), strides = constant_sizes(meta.strides);
  if (gradient.defined() && gradient.strides() == at::IntArrayRef(strides) &&
      gradient.scalar_type() == meta.dtype)
    return gradient;
  at::Tensor result = at::empty_strided(sizes, strides, at::dtype(meta.dtype).device(meta.device));
  return gradient.defined() ? result.copy_(gradient) : result.zero_();
}

/// torch's own node for this throws an error of torch's.
struct DoubleBackward : torch::autograd::Node {
  DoubleBackward(std::string model, torch::autograd::edge_list&& edges)
      : torch::autograd::Node(std::move(edges)), model_(std::move(model)) {}
  variable_list apply(variable_list&&) override {
    fail(ErrorCode::kUnsupported,
         "{}: a compiled function cannot be differentiated twice; call the uncompiled model for that",
         model_);
  }

 private:
  const std::string model_;
};

/// Gradients of a backward that was asked to be differentiable: they are, by name, but there is no formula.
void refuse_double_backward(const std::string& model, variable_list& gradients,
                            const torch::autograd::edge_list& edges) {
  const auto error = c10::make_intrusive<DoubleBackward>(model, torch::autograd::edge_list(edges));
  for (at::Tensor& gradient : gradients) {
    if (!gradient.defined()) continue;
    gradient = gradient.variable_data();
    torch::autograd::set_history(gradient, error);
  }
}

}  // namespace

std::vector<c10::IValue> AotNode::take_saved() {
  const std::lock_guard lock(mutex_);
  std::vector<c10::IValue> values;
  values.reserve(saved_.size() + program_->tangents.size());
  for (const auto& saved : saved_) values.emplace_back(saved.unpack(getptr()));
  // This backward is the last reader of its saved tensors: the graph frees them as it runs.
  if (!torch::autograd::get_current_graph_task_keep_graph())
    for (auto& saved : saved_) saved.reset_data();
  return values;
}

variable_list AotNode::apply(variable_list&& gradients) {
  const bool differentiable = at::GradMode::is_enabled();
  std::vector<c10::IValue> inputs = take_saved();
  const size_t tangents = program_->tangents.size();
  std::vector<bool> given(tangents);
  {
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < tangents; ++i) {
      given[i] = i < gradients.size() && gradients[i].defined();
      inputs.emplace_back(as_traced(given[i] ? gradients[i] : at::Tensor(), program_->tangents[i]));
    }
  }
  gradients.clear();
  const CompiledFunction& backward = program_->backward();
  std::vector<c10::IValue> outputs;
  {
    const at::NoGradGuard no_grad;
    const at::AutoDispatchBelowADInplaceOrView no_autograd;
    const WithoutAutocast no_autocast;
    outputs = backward(std::move(inputs));
    program_->check_backward(outputs);
  }
  variable_list results(num_outputs());
  for (size_t i = 0; i < results.size() && i < outputs.size(); ++i) {
    if (!outputs[i].isTensor() || !outputs[i].toTensor().defined() || !task_should_compute_output(i))
      continue;
    // As in eager: no gradient if nothing that it is computed from had one.
    const std::vector<bool>& depends = program_->depends[i];
    bool any = false;
    for (size_t k = 0; k < tangents; ++k) any = any || (depends[k] && given[k]);
    if (any) results[i] = outputs[i].toTensor();
  }
  if (differentiable) refuse_double_backward(program_->name, results, next_edges());
  return results;
}

void AotNode::release_variables() {
  const std::lock_guard lock(mutex_);
  for (auto& saved : saved_) saved.reset_data();
}

}  // namespace halftone
