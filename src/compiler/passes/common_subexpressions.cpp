// common_subexpressions: of nodes with the same operator and the same operands, the first stays.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>

#include <unordered_map>

#include "compiler/passes/alias.h"
#include "compiler/passes/match.h"
#include "graph/rewrite/edit.h"

namespace halftone::compiler {
namespace {

bool is_pure(const Node& node, const AliasSets& aliases) {
  if (node.outputs().empty() || has_side_effects(node)) return false;
  if (node.op() != nullptr && node.op()->hasTag(at::Tag::nondeterministic_seeded)) return false;
  if (node.target().starts_with("builtin::"))
    return node.is("builtin::unpack") || node.is("builtin::getitem");
  for (const Value* output : node.outputs()) {
    if (aliases.is_written(output)) return false;
  }
  for (const Value* input : node.input_values()) {
    if (aliases.is_written(input)) return false;
  }
  return true;
}

bool equal(const Node& a, const Node& b) {
  return a.target() == b.target() && a.inputs() == b.inputs() && a.outputs().size() == b.outputs().size();
}

bool may_merge(const Node& copy, const Node& original, const AliasSets& aliases) {
  for (size_t i = 0; i < copy.outputs().size(); ++i) {
    if (!aliases.may_merge(copy.output(i), original.output(i))) return false;
    if (copy.output(i)->type() != original.output(i)->type()) return false;
  }
  return true;
}

// Equal nodes have equal keys.
std::string key_of(const Node& node) {
  std::string key = node.target();
  for (const Value* value : node.input_values()) key += fmt::format(" {}", fmt::ptr(value));
  return key;
}

}  // namespace

bool rewrite_common_subexpressions(PassContext& context) {
  const AliasSets aliases(context.graph);
  std::unordered_map<std::string, std::vector<Node*>> seen;
  size_t merged = 0;
  for (Node* node : snapshot(context.graph)) {
    if (!is_pure(*node, aliases)) continue;
    std::vector<Node*>& candidates = seen[key_of(*node)];
    Node* original = nullptr;
    for (Node* candidate : candidates) {
      if (original == nullptr && equal(*node, *candidate) && may_merge(*node, *candidate, aliases))
        original = candidate;
    }
    if (original == nullptr) {
      candidates.push_back(node);
      continue;
    }
    for (size_t i = 0; i < node->outputs().size(); ++i)
      context.graph.replace_all_uses(node->output(i), original->output(i));
    ++merged;
  }
  if (merged > 0) context.note("{} computed once instead of again", counted(merged, "node"));
  return merged > 0;
}

}  // namespace halftone::compiler
