#include "graph/ir/copy.h"

namespace halftone {

Argument copy_argument(const Argument& argument, const ValueMapping& mapping) {
  if (Value* value = argument.value()) return mapping.at(value);
  if (const auto* subgraph = argument.get_if<std::shared_ptr<Graph>>()) {
    return std::shared_ptr<Graph>((*subgraph)->clone());
  }
  if (const auto* list = argument.list()) {
    Argument::List copy;
    copy.reserve(list->size());
    for (const Argument& item : *list) copy.push_back(copy_argument(item, mapping));
    return copy;
  }
  return argument;
}

OutputSpec spec_of(const Value& value) {
  return {value.name(), value.type(), value.meta(), value.expression()};
}

Node* append_copy(Graph& graph, const Node& node, ValueMapping& mapping) {
  std::vector<NamedArgument> inputs;
  inputs.reserve(node.inputs().size());
  for (const NamedArgument& input : node.inputs())
    inputs.push_back({input.name, copy_argument(input.value, mapping)});
  std::vector<OutputSpec> outputs;
  outputs.reserve(node.outputs().size());
  for (const Value* output : node.outputs()) outputs.push_back(spec_of(*output));
  Node* fresh = graph.append_like(node, std::move(inputs), std::move(outputs));
  for (size_t i = 0; i < node.outputs().size(); ++i) mapping.emplace(node.output(i), fresh->output(i));
  return fresh;
}

std::unique_ptr<Graph> Graph::clone() const {
  auto copy = std::make_unique<Graph>();
  const size_t values = inputs_.size() + nodes_.size();  // or a few more
  copy->reserve_values(values);
  ValueMapping mapping;
  mapping.reserve(values);
  copy->inputs_.reserve(inputs_.size());
  for (const GraphInput& input : inputs_) {
    mapping[input.value] = copy->add_input(spec_of(*input.value), input.kind, input.target);
    copy->set_input_fixed(copy->inputs_.size() - 1, input.fixed);
  }
  for (const auto& node : nodes_) append_copy(*copy, *node, mapping);
  std::vector<Argument> results;
  for (const NamedArgument& result : return_node_->inputs())
    results.push_back(copy_argument(result.value, mapping));
  copy->set_outputs(std::move(results), outputs_);
  return copy;
}

}  // namespace halftone
