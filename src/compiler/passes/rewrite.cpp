#include "compiler/passes/rewrite.h"

#include "base/errors.h"

namespace halftone::compiler {

Node* replace_value(Value* old_value, Node* before, std::string_view target,
                    std::vector<NamedArgument> inputs, std::vector<OutputSpec> more, const Source& source) {
  Graph& graph = old_value->graph();
  const std::string name = old_value->name();
  std::vector<OutputSpec> outputs = {{name, old_value->type(), old_value->meta(), old_value->expression()}};
  outputs.insert(outputs.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  Node* node = graph.insert(before, target, std::move(inputs), std::move(outputs), source);
  graph.replace_all_uses(old_value, node->output(0));
  Value* fresh = node->output(0);
  std::string parked = name + "_replaced";
  while (graph.try_value(parked) != nullptr) parked += "_";
  graph.rename(old_value, parked);
  graph.rename(fresh, name);
  return node;
}

void set_operand(Node& node, std::string_view name, Argument value) {
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    if (node.inputs()[i].name == name) return node.set_input(i, std::move(value));
  }
  fail(ErrorCode::kInternal, "{} has no operand \"{}\"", node.target(), name);
}

const Argument& operand(const Node& node, std::string_view name) {
  static const Argument none;
  const Argument* given = node.try_input(name);
  return given != nullptr ? *given : none;
}

std::vector<Node*> snapshot(const Graph& graph) {
  std::vector<Node*> nodes;
  nodes.reserve(graph.nodes().size());
  for (const auto& node : graph.nodes()) nodes.push_back(node.get());
  return nodes;
}

}  // namespace halftone::compiler
