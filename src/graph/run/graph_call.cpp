#include "graph/run/graph_call.h"

#include "base/errors.h"
#include "graph/aten/autocast_state.h"
#include "graph/aten/torch_errors.h"
#include "graph/run/mutation.h"

namespace halftone {

std::vector<c10::IValue> call_graph(const CallableGraph& graph, const std::vector<c10::IValue>& inputs,
                                    const TensorMap& state, const NodeHook* hook) {
  try {
    const SymbolBindings bindings = graph.check.check(inputs);
    check_written_inputs(graph.executor.graph(), inputs);
    const WithoutAutocast no_autocast;
    auto outputs = graph.executor.run({inputs, graph.tensors, state, bindings, hook});
    return apply_mutations(graph.executor.graph(), std::move(outputs), inputs, state);
  } catch (const std::exception&) {
    rethrow_at(graph.model, ErrorCode::kInternal);
  }
}

std::vector<c10::IValue> flatten_call(const CallSpec& call, std::vector<c10::IValue> args,
                                      std::map<std::string, c10::IValue> kwargs) {
  std::vector<c10::IValue> inputs =
      flatten(call.args, c10::ivalue::Tuple::create(std::move(args)), "arguments");
  c10::impl::GenericDict named(c10::StringType::get(), c10::AnyType::get());
  for (auto& [name, value] : kwargs) named.insert(name, std::move(value));
  for (auto& leaf : flatten(call.kwargs, named, "keyword arguments")) inputs.push_back(std::move(leaf));
  return inputs;
}

TensorMap copy_of_state(const std::string& model, const Graph& graph, const TensorMap& tensors) {
  TensorMap state;
  std::map<const void*, at::Tensor> clones;
  for (const std::string& name : mutated_tensor_names(graph)) {
    const auto found = tensors.find(name);
    if (found == tensors.end())
      fail(ErrorCode::kNotFound, "{}: the graph writes \"{}\", which has no tensor", model, name);
    at::Tensor& clone = clones[found->second.unsafeGetTensorImpl()];
    if (!clone.defined()) clone = found->second.detach().clone();
    state[name] = clone;
  }
  return state;
}

}  // namespace halftone
