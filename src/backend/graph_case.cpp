#include "backend/graph_case.h"

#include <ATen/core/Tensor.h>

#include "graph/interpreter.h"
#include "graph/mutation.h"

namespace halftone {
namespace {

c10::IValue copy_of(const c10::IValue& value) {
  if (!value.isTensor() || !value.toTensor().defined()) return value;
  const at::Tensor& tensor = value.toTensor();
  return tensor.detach().clone().set_requires_grad(tensor.requires_grad());
}

}  // namespace

GraphCase copy_of(const GraphCase& graph_case) {
  const GraphModule& module = *graph_case.module;
  TensorMap tensors = *module.tensors();
  for (const std::string& name : mutated_tensor_names(module.graph())) {
    if (const auto found = tensors.find(name); found != tensors.end())
      found->second = copy_of(c10::IValue(found->second)).toTensor();
  }
  std::vector<c10::IValue> inputs;
  for (const c10::IValue& input : graph_case.inputs) inputs.push_back(copy_of(input));
  return {module.with_flat_graph(module.graph().clone(), std::move(tensors)), std::move(inputs)};
}

RecordedValues record_values(const GraphCase& graph_case) {
  const GraphCase own = copy_of(graph_case);
  const std::shared_ptr<const Graph> graph = own.module->graph().clone();
  RecordedValues values;
  const NodeHook hook = [&values](const Node& node, const std::vector<c10::IValue>& outputs, double) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      const c10::IValue& value = outputs[i];
      // Detached: a recorded value is an input, not part of a backward pass.
      values[node.output(i)->name()] = value.isTensor() && value.toTensor().defined()
                                           ? c10::IValue(value.toTensor().detach().clone())
                                           : value;
    }
  };
  const auto tensors = own.module->tensors();
  Interpreter(graph).run(collect_graph_inputs(*graph, {own.inputs, *tensors, {}, {}}), &hook);
  return values;
}

}  // namespace halftone
