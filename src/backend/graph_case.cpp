#include "backend/graph_case.h"

#include <ATen/core/Tensor.h>

#include "base/errors.h"
#include "graph/run/graph_call.h"
#include "graph/run/interpreter.h"
#include "graph/run/mutation.h"

namespace halftone {
namespace {

c10::IValue copy_of(const c10::IValue& value) {
  if (!value.isTensor() || !value.toTensor().defined()) return value;
  const at::Tensor& tensor = value.toTensor();
  return tensor.detach().clone().set_requires_grad(tensor.requires_grad());
}

}  // namespace

CaseMemory own_memory(const GraphCase& graph_case) {
  const GraphModule& module = *graph_case.module;
  CaseMemory own{*module.tensors(), {}};
  for (const std::string& name : mutated_tensor_names(module.graph())) {
    if (const auto found = own.tensors.find(name); found != own.tensors.end())
      found->second = copy_of(c10::IValue(found->second)).toTensor();
  }
  for (const c10::IValue& input : graph_case.inputs) own.inputs.push_back(copy_of(input));
  return own;
}

GraphCase copy_of(const GraphCase& graph_case) {
  const GraphModule& module = *graph_case.module;
  CaseMemory own = own_memory(graph_case);
  return {module.with_flat_graph(module.graph().clone(), std::move(own.tensors)), std::move(own.inputs)};
}

std::vector<c10::IValue> interpret(const GraphCase& graph_case, const CaseMemory& memory,
                                   const NodeHook* hook) {
  const GraphModule& module = *graph_case.module;
  const std::string name = module.name.empty() ? "graph" : module.name;
  TensorMap state;
  for (const std::string& written : mutated_tensor_names(module.graph())) {
    const auto found = memory.tensors.find(written);
    if (found == memory.tensors.end())
      fail(ErrorCode::kNotFound, "{}: the graph writes \"{}\", which has no tensor", name, written);
    state.emplace(written, found->second);
  }
  const InterpretedGraph graph(std::shared_ptr<const Graph>(graph_case.module, &module.graph()));
  return call_graph({name, InputCheck(module), graph, memory.tensors}, memory.inputs, state, hook);
}

RecordedValues record_values(const GraphCase& graph_case, const std::function<bool(const Value&)>& wanted) {
  RecordedValues values;
  const NodeHook hook = [&](const Node& node, const std::vector<c10::IValue>& outputs, double) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (wanted && !wanted(*node.output(i))) continue;
      const c10::IValue& value = outputs[i];
      // Detached: a recorded value is an input, not part of a backward pass.
      values[node.output(i)->name()] = value.isTensor() && value.toTensor().defined()
                                           ? c10::IValue(value.toTensor().detach().clone())
                                           : value;
    }
  };
  interpret(graph_case, own_memory(graph_case), &hook);
  return values;
}

}  // namespace halftone
