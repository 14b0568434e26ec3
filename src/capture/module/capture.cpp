#include <ATen/ops/allclose.h>
#include <c10/util/Exception.h>
#include <torch/nn/module.h>

#include "base/errors.h"
#include "capture/module/trace.h"
#include "halftone/capture_module.h"

namespace halftone {
namespace {

/// Inputs that no node and no output reads and that are the module's own.
void drop_unused_inputs(Graph& graph, TensorMap& tensors) {
  for (size_t i = graph.inputs().size(); i-- > 0;) {
    const GraphInput& input = graph.inputs()[i];
    if (input.kind == InputKind::kUser || !input.value->users().empty()) continue;
    tensors.erase(input.target);
    graph.erase_input(i);
  }
}

bool agree(const c10::IValue& found, const c10::IValue& expected) {
  if (!expected.isTensor() || !expected.toTensor().defined()) return true;
  const at::Tensor& a = found.toTensor();
  const at::Tensor& b = expected.toTensor();
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  if (!b.is_floating_point() && !b.is_complex()) return a.equal(b);
  const double tolerance = c10::elementSize(b.scalar_type()) < 4 ? 1e-2 : 1e-5;
  return at::allclose(a, b, tolerance, tolerance, /*equal_nan=*/true);
}

void check_replay(const std::shared_ptr<GraphModule>& module, const Trace& trace) {
  std::vector<c10::IValue> inputs;
  for (const c10::IValue& leaf : trace.inputs)
    inputs.push_back(leaf.isTensor() ? c10::IValue(leaf.toTensor().clone()) : leaf);
  const std::vector<c10::IValue> results = Session(module).run(std::move(inputs));
  for (size_t i = 0; i < results.size(); ++i) {
    if (!agree(results[i], trace.results[i]))
      fail(ErrorCode::kInternal, "result {} of the captured graph is not the model's", i);
  }
}

std::shared_ptr<GraphModule> capture_traced(torch::nn::Module* module, const ForwardFunction& forward,
                                            const std::vector<c10::IValue>& examples,
                                            const CaptureOptions& options) {
  Trace traced =
      trace({module, forward, options.input_names, {options.allow.begin(), options.allow.end()}}, examples);
  drop_unused_inputs(*traced.graph, traced.tensors);
  lint_or_throw(*traced.graph, "the captured graph");
  auto result =
      std::make_shared<GraphModule>(std::move(traced.graph), std::move(traced.tensors), traced.call);
  result->sample_inputs = traced.inputs;
  result->notes = std::move(traced.notes);
  if (options.check) check_replay(result, traced);
  return result;
}

std::shared_ptr<GraphModule> capture_named(torch::nn::Module* module, const ForwardFunction& forward,
                                           const std::vector<c10::IValue>& examples,
                                           const CaptureOptions& options) {
  const std::string name = !options.name.empty() ? options.name : module ? module->name() : "function";
  try {
    auto result = capture_traced(module, forward, examples, options);
    result->name = name;
    return result;
  } catch (const Error& error) {
    throw error.with_context(name);
  } catch (const c10::Error& error) {
    fail(ErrorCode::kInvalidArgument, "{}: the model failed: {}", name, error.what_without_backtrace());
  }
}

}  // namespace

std::shared_ptr<GraphModule> capture(torch::nn::Module& module, const ForwardFunction& forward,
                                     std::vector<c10::IValue> examples, const CaptureOptions& options) {
  return capture_named(&module, forward, examples, options);
}

std::shared_ptr<GraphModule> capture(const ForwardFunction& function, std::vector<c10::IValue> examples,
                                     const CaptureOptions& options) {
  return capture_named(nullptr, function, examples, options);
}

}  // namespace halftone
