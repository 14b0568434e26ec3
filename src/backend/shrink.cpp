#include "backend/shrink.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_set>

#include "capture/module/tracing/geometry.h"
#include "graph/rewrite/edit.h"
#include "graph/rewrite/unused_inputs.h"

namespace halftone {
namespace {

GraphCase rebuilt(const GraphCase& old_case, std::unique_ptr<Graph> graph) {
  return {old_case.module->with_flat_graph(std::move(graph), *old_case.module->tensors()), old_case.inputs};
}

/// For nodes whose results only others of the same range use.
void erase_range(Graph& graph, const std::vector<Node*>& nodes, size_t begin, size_t end) {
  for (size_t i = end; i > begin; --i) graph.erase(nodes[i - 1]);
}

/// `hint`, or that with a number, where a user input has this name already.
std::string unique_target(const Graph& graph, const std::string& hint) {
  std::set<std::string> taken;
  for (const GraphInput& input : graph.inputs()) taken.insert(input.target);
  std::string target = hint;
  for (int i = 1; taken.contains(target); ++i) target = fmt::format("{}_{}", hint, i);
  return target;
}

/// Whether an input can hold it.
bool can_be_input(const c10::IValue& value) {
  return value.isTensor() ? value.toTensor().defined() : value.isInt() || value.isDouble() || value.isBool();
}

void turn_into_input(Graph& graph, Value* value, const c10::IValue& held) {
  OutputSpec spec{value->name(), value->type()};
  if (held.isTensor()) spec.meta = tensor_meta(held.toTensor());
  Value* input = graph.add_input(std::move(spec), InputKind::kUser, unique_target(graph, value->name()));
  graph.replace_all_uses(value, input);
}

/// Gives the value the sizes of what it held; true where it had symbolic ones.
bool fix_sizes(Value& value, const c10::IValue& held) {
  const bool symbolic_number = value.expression() && !value.expression()->is_constant();
  if (symbolic_number) value.set_expression(std::nullopt);
  if (!value.meta() || !held.isTensor() || !held.toTensor().defined()) return symbolic_number;
  const auto is_symbolic = [](const SymExpr& size) { return !size.is_constant(); };
  const bool symbolic = std::any_of(value.meta()->sizes.begin(), value.meta()->sizes.end(), is_symbolic) ||
                        std::any_of(value.meta()->strides.begin(), value.meta()->strides.end(), is_symbolic);
  if (symbolic) value.set_meta(tensor_meta(held.toTensor()));
  return symbolic || symbolic_number;
}

}  // namespace

std::optional<GraphCase> cut_end(const GraphCase& graph_case, size_t count) {
  auto graph = graph_case.module->graph().clone();
  const std::vector<Node*> nodes = snapshot(*graph);
  const std::unordered_set<const Node*> kept(nodes.begin(),
                                             nodes.begin() + static_cast<std::ptrdiff_t>(count));
  std::vector<Argument> outputs;
  for (size_t i = 0; i < count; ++i) {
    for (Value* value : nodes[i]->outputs()) {
      const auto& users = value->users();
      if (std::any_of(users.begin(), users.end(), [&](const Node* user) { return !kept.contains(user); }))
        outputs.emplace_back(value);
    }
  }
  if (outputs.empty()) return std::nullopt;
  std::vector<GraphOutput> kinds(outputs.size());
  graph->set_outputs(std::move(outputs), std::move(kinds));
  erase_range(*graph, nodes, count, nodes.size());
  return rebuilt(graph_case, std::move(graph));
}

std::optional<GraphCase> without_outputs(const GraphCase& graph_case, size_t begin, size_t end) {
  auto graph = graph_case.module->graph().clone();
  std::vector<Argument> outputs;
  std::vector<GraphOutput> kinds;
  for (size_t i = 0; i < graph->outputs().size(); ++i) {
    if (i >= begin && i < end) continue;
    outputs.push_back(graph->output_value(i));
    kinds.push_back(graph->outputs()[i]);
  }
  if (outputs.empty()) return std::nullopt;
  graph->set_outputs(std::move(outputs), std::move(kinds));
  graph->erase_dead_nodes();
  return rebuilt(graph_case, std::move(graph));
}

std::optional<GraphCase> nodes_as_inputs(const GraphCase& graph_case, size_t begin, size_t end,
                                         const RecordedValues& values) {
  auto graph = graph_case.module->graph().clone();
  const std::vector<Node*> nodes = snapshot(*graph);
  const std::unordered_set<const Node*> leaving(nodes.begin() + static_cast<std::ptrdiff_t>(begin),
                                                nodes.begin() + static_cast<std::ptrdiff_t>(end));
  std::vector<c10::IValue> inputs = graph_case.inputs;
  std::vector<std::pair<Value*, std::string>> renamed;
  for (size_t i = begin; i < end; ++i) {
    for (Value* value : nodes[i]->outputs()) {
      const auto& users = value->users();
      if (std::all_of(users.begin(), users.end(), [&](const Node* user) { return leaving.contains(user); }))
        continue;
      const auto held = values.find(value->name());
      if (held == values.end() || !can_be_input(held->second)) return std::nullopt;
      turn_into_input(*graph, value, held->second);
      renamed.emplace_back(graph->inputs().back().value, value->name());
      inputs.push_back(held->second);
    }
  }
  // Their uses inside the range went to the new inputs too, so that the order of erasing does not matter.
  erase_range(*graph, nodes, begin, end);
  for (const auto& [input, name] : renamed) graph->rename(input, name);
  graph->erase_dead_nodes();
  GraphCase smaller = rebuilt(graph_case, std::move(graph));
  smaller.inputs = std::move(inputs);
  return smaller;
}

std::optional<GraphCase> cut_begin(const GraphCase& graph_case, size_t count) {
  const std::vector<Node*> nodes = snapshot(graph_case.module->graph());
  const std::unordered_set<const Node*> leaving(nodes.begin(),
                                                nodes.begin() + static_cast<std::ptrdiff_t>(count));
  const auto is_read_later = [&](const Value& value) {
    return leaving.contains(value.producer()) &&
           std::any_of(value.users().begin(), value.users().end(),
                       [&](const Node* user) { return !leaving.contains(user); });
  };
  return nodes_as_inputs(graph_case, 0, count, record_values(graph_case, is_read_later));
}

std::optional<GraphCase> without_unused_inputs(const GraphCase& graph_case) {
  const UnusedInputOptions options{.user_inputs = true};
  // Looks before it copies the graph: mostly there is none.
  if (!has_unused_inputs(graph_case.module->graph(), options)) return std::nullopt;
  auto graph = graph_case.module->graph().clone();
  TensorMap tensors = *graph_case.module->tensors();
  std::vector<c10::IValue> inputs = graph_case.inputs;
  const std::vector<RemovedInput> removed = remove_unused_inputs(*graph, tensors, options);
  for (size_t i = removed.size(); i-- > 0;) {
    if (removed[i].kind == InputKind::kUser)
      inputs.erase(inputs.begin() + static_cast<std::ptrdiff_t>(removed[i].argument));
  }
  return GraphCase{graph_case.module->with_flat_graph(std::move(graph), std::move(tensors)),
                   std::move(inputs)};
}

std::optional<GraphCase> without_mutation_outputs(const GraphCase& graph_case) {
  auto graph = graph_case.module->graph().clone();
  std::vector<Argument> outputs;
  for (size_t i = 0; i < graph->outputs().size(); ++i) outputs.push_back(graph->output_value(i));
  std::vector<GraphOutput> kinds(outputs.size());
  if (kinds == graph->outputs()) return std::nullopt;
  graph->set_outputs(std::move(outputs), std::move(kinds));
  return rebuilt(graph_case, std::move(graph));
}

std::optional<GraphCase> with_fixed_sizes(const GraphCase& graph_case, const RecordedValues& values) {
  auto graph = graph_case.module->graph().clone();
  const TensorMap& tensors = *graph_case.module->tensors();
  bool changed = false;
  size_t user = 0;
  for (const GraphInput& input : graph->inputs()) {
    c10::IValue held;
    if (input.kind == InputKind::kUser) {
      held = graph_case.inputs[user++];
    } else if (const auto found = tensors.find(input.target); found != tensors.end()) {
      held = found->second;
    }
    changed = fix_sizes(*input.value, held) || changed;
  }
  for (const auto& node : graph->nodes()) {
    for (Value* output : node->outputs()) {
      const auto held = values.find(output->name());
      changed = (held != values.end() && fix_sizes(*output, held->second)) || changed;
    }
  }
  if (!changed) return std::nullopt;
  GraphCase fixed = rebuilt(graph_case, std::move(graph));
  fixed.module->ranges.clear();
  fixed.module->guards.clear();
  return fixed;
}

}  // namespace halftone
