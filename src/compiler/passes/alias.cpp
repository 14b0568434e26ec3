#include "compiler/passes/alias.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "graph/run/mutation.h"

namespace halftone::compiler {
namespace {

// Give back their operand in inference, which their schemas do not say.
constexpr std::array<std::string_view, 6> kHiddenAliases = {
    "aten::dropout",      "aten::feature_dropout", "aten::alpha_dropout", "aten::feature_alpha_dropout",
    "aten::_unsafe_view", "aten::type_as"};

}  // namespace

AliasSets::AliasSets(const Graph& graph) {
  const std::vector<bool> written = inputs_written_in_place(graph);
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const GraphInput& input = graph.inputs()[i];
    flags_[input.value] = {written[i], false, true, input.kind == InputKind::kUser};
    any_written_ = any_written_ || written[i];
  }
  for (const auto& node : graph.nodes()) visit(*node);
  for (const Value* value : graph.return_node().input_values()) flags_[root(value)].returned = true;
  // Flags were set on whatever was the root then.
  std::unordered_map<const Value*, Flags> merged;
  for (const auto& [value, flags] : flags_) {
    Flags& all = merged[root(value)];
    all.written = all.written || flags.written;
    all.returned = all.returned || flags.returned;
    all.input = all.input || flags.input;
    all.user_input = all.user_input || flags.user_input;
  }
  flags_ = std::move(merged);
}

const Value* AliasSets::root(const Value* value) const {
  while (const Value* const* parent = parents_.find(value)) value = *parent;
  return value;
}

const AliasSets::Flags& AliasSets::flags(const Value* value) const {
  static const Flags none;
  const auto found = flags_.find(root(value));
  return found == flags_.end() ? none : found->second;
}

void AliasSets::unite(const Value* a, const Value* b) {
  a = root(a);
  b = root(b);
  if (a != b) parents_[a] = b;
}

void AliasSets::visit(const Node& node) {
  if (node.op() == nullptr) {
    if (node.target().starts_with("sym::")) return;
    for (const NamedArgument& input : node.inputs()) {
      share(node, input.value);
      if (const auto* subgraph = input.value.get_if<std::shared_ptr<Graph>>()) {
        const std::vector<bool> written = inputs_written_in_place(**subgraph);
        // Which operand meets which input differs between the built-ins: a write to one counts as one to all.
        if (std::find(written.begin(), written.end(), true) != written.end()) {
          for (const NamedArgument& operand : node.inputs()) mark_written(operand.value);
        }
      }
    }
    return;
  }
  for (const c10::Argument& expected : node.op()->schema().arguments()) {
    const Argument* given = node.try_input(expected.name());
    if (given == nullptr || !expected.alias_info()) continue;
    if (expected.alias_info()->isWrite()) mark_written(*given);
    share(node, *given);
  }
  if (std::find(kHiddenAliases.begin(), kHiddenAliases.end(), node.target()) != kHiddenAliases.end())
    share(node, node.input(0));
}

void AliasSets::mark_written(const Argument& argument) {
  if (const Value* value = argument.value()) {
    flags_[value].written = true;
    any_written_ = true;
  }
  if (const auto* list = argument.list()) {
    for (const Argument& item : *list) mark_written(item);
  }
}

void AliasSets::share(const Node& node, const Argument& argument) {
  if (const Value* value = argument.value()) {
    for (const Value* output : node.outputs()) unite(output, value);
  }
  if (const auto* list = argument.list()) {
    for (const Argument& item : *list) share(node, item);
  }
}

bool AliasSets::may_merge(const Value* copy, const Value* original) const {
  const Flags &a = flags(copy), &b = flags(original);
  if (a.written || b.written) return false;
  return !a.returned || (!b.returned && !b.input);
}

}  // namespace halftone::compiler
