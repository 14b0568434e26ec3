#include "graph/rewrite/edit.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>

#include "base/errors.h"
#include "graph/ir/copy.h"

namespace halftone {
namespace {

/// The new node's first output is described by the first of `outputs`, which has the old value's name.
Node* insert_in_place_of(Value* old_value, Node* before, std::string_view target,
                         std::vector<NamedArgument> inputs, std::vector<OutputSpec> outputs,
                         const Source& source) {
  Graph& graph = old_value->graph();
  std::string parked = old_value->name() + "_replaced";
  while (graph.try_value(parked) != nullptr) parked += "_";
  graph.rename(old_value, parked);
  Node* node = graph.insert(before, target, std::move(inputs), std::move(outputs), source);
  graph.replace_all_uses(old_value, node->output());
  return node;
}

}  // namespace

std::vector<Node*> snapshot(const Graph& graph) {
  std::vector<Node*> nodes;
  nodes.reserve(graph.nodes().size());
  for (const auto& node : graph.nodes()) nodes.push_back(node.get());
  return nodes;
}

Node* replace_value(Value* old_value, Node* before, std::string_view target,
                    std::vector<NamedArgument> inputs, std::vector<OutputSpec> more, const Source& source) {
  std::vector<OutputSpec> outputs = {spec_of(*old_value)};
  outputs.insert(outputs.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  return insert_in_place_of(old_value, before, target, std::move(inputs), std::move(outputs), source);
}

Node* insert_for(Value* old_value, Node* before, std::string_view target, std::vector<NamedArgument> inputs,
                 std::optional<TensorMeta> meta, const Source& source) {
  OutputSpec output{old_value->name(), ValueType::kTensor, std::move(meta)};
  return insert_in_place_of(old_value, before, target, std::move(inputs), {std::move(output)}, source);
}

void set_operand(Node& node, std::string_view name, Argument value) {
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    if (node.inputs()[i].name == name) return node.set_input(i, std::move(value));
  }
  const auto index = [&](std::string_view each) {
    return node.op() != nullptr ? node.op()->schema().argumentIndexWithName(each) : std::nullopt;
  };
  const auto wanted = index(name);
  if (!wanted) fail(ErrorCode::kInternal, "{} has no operand \"{}\"", node.target(), name);
  std::vector<NamedArgument> inputs = node.inputs();
  const auto place = std::find_if(inputs.begin(), inputs.end(),
                                  [&](const NamedArgument& input) { return index(input.name) > wanted; });
  inputs.insert(place, {std::string(name), std::move(value)});
  node.set_inputs(std::move(inputs));
}

const Argument& operand(const Node& node, std::string_view name) {
  static const Argument none;
  const Argument* given = node.try_input(name);
  return given != nullptr ? *given : none;
}

Argument optional_tensor(Value* value) {
  return value != nullptr ? Argument(value) : Argument();
}

}  // namespace halftone
