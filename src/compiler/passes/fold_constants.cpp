// fold_constants: nodes that read nothing but constants run now. Results may not take more memory than what
// they are made from, but for a small allowance. restore_weights: those that restore weights of convolutions
// run before all others, however much memory that takes: the convolution's kernels want floats.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>
#include <ATen/core/grad_mode.h>

#include "compiler/passes/alias.h"
#include "compiler/passes/constants.h"
#include "compiler/passes/match.h"
#include "graph/rewrite/edit.h"
#include "graph/run/interpreter.h"

namespace halftone::compiler {
namespace {

constexpr size_t kAllowance = 64 * 1024;

bool is_foldable(const Node& node, const Constants& constants, const AliasSets& aliases) {
  if (node.op() == nullptr || node.outputs().empty() || has_side_effects(node) ||
      node.op()->hasTag(at::Tag::nondeterministic_seeded))
    return false;
  // Uninitialised memory is not a constant.
  if (node.target().starts_with("aten::empty") || node.target().starts_with("aten::new_empty")) return false;
  for (const Value* output : node.outputs()) {
    if (output->type() != ValueType::kTensor || aliases.is_written(output) || aliases.is_returned(output))
      return false;
  }
  for (const Value* input : node.input_values()) {
    if (!constants.holds(input)) return false;
  }
  return true;
}

// The node alone in a graph, its constants as inputs.
std::vector<c10::IValue> run_alone(const Node& node, const Constants& constants) {
  auto graph = std::make_shared<Graph>();
  std::map<const Value*, Value*> mapping;
  std::vector<c10::IValue> inputs;
  for (const Value* value : node.input_values()) {
    if (mapping.contains(value)) continue;
    mapping[value] =
        graph->add_input({value->name(), value->type(), value->meta()}, InputKind::kUser, value->name());
    inputs.emplace_back(constants.tensor(value));
  }
  const std::function<Argument(const Argument&)> copy = [&](const Argument& argument) -> Argument {
    if (const Value* value = argument.value()) return mapping.at(value);
    if (argument.list() == nullptr) return argument;
    Argument::List list;
    for (const Argument& item : *argument.list()) list.push_back(copy(item));
    return list;
  };
  std::vector<NamedArgument> operands;
  for (const NamedArgument& input : node.inputs()) operands.push_back({input.name, copy(input.value)});
  std::vector<OutputSpec> outputs;
  for (const Value* output : node.outputs())
    outputs.push_back({output->name() + "_folded", output->type(), output->meta()});
  const Node* only = graph->append(node.target(), std::move(operands), std::move(outputs));
  std::vector<Argument> results;
  for (Value* output : only->outputs()) results.emplace_back(output);
  graph->set_outputs(std::move(results), std::vector<GraphOutput>(only->outputs().size()));
  const at::NoGradGuard no_grad;
  return Interpreter(graph).run(std::move(inputs));
}

bool fits(const std::vector<c10::IValue>& results, const Node& node, const Constants& constants) {
  size_t read = 0, made = 0;
  for (const Value* value : node.input_values()) read += constants.tensor(value).nbytes();
  for (const c10::IValue& result : results) {
    if (!result.isTensor() || !result.toTensor().defined()) return false;
    made += result.toTensor().nbytes();
  }
  return made <= read + kAllowance;
}

/// Folds the nodes that `wanted` says.
bool fold(PassContext& context, bool (*wanted)(const Node& node), bool any_size) {
  Constants constants(context);
  const AliasSets aliases(context.graph);
  size_t folded = 0;
  for (Node* node : snapshot(context.graph)) {
    if (!wanted(*node) || !is_foldable(*node, constants, aliases)) continue;
    try {
      const std::vector<c10::IValue> results = run_alone(*node, constants);
      if (!any_size && !fits(results, *node, constants)) {
        context.note("%{} is computed in each run: as a constant it would need too much memory",
                     node->output()->name());
        continue;
      }
      for (size_t i = 0; i < results.size(); ++i) {
        if (node->output(i)->users().empty()) continue;
        Value* constant = constants.add(node->output(i)->name() + "_folded", results[i].toTensor());
        context.graph.replace_all_uses(node->output(i), constant);
      }
      ++folded;
    } catch (const Error& error) {
      context.note("%{} is not folded: {}", node->output()->name(), error.what());
    }
  }
  if (folded > 0) context.note("{}", counted(folded, "node"));
  return folded > 0;
}

}  // namespace

bool rewrite_fold_constants(PassContext& context) {
  return fold(
      context, [](const Node&) { return true; }, /*any_size=*/false);
}

bool rewrite_restore_weights(PassContext& context) {
  return fold(
      context, [](const Node& node) { return node.is("halftone::restore_int8_weight"); }, /*any_size=*/true);
}

}  // namespace halftone::compiler
