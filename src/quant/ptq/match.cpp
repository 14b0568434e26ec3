#include "quant/ptq/match.h"

#include <algorithm>
#include <set>
#include <unordered_set>

namespace halftone::ptq {
namespace {

constexpr std::string_view kWildcard = "*";

/// Tries one pattern at one operation.
class Attempt {
 public:
  Attempt(const FusedOpGraph& graph, const Pattern& pattern) : graph_(graph), nodes_(pattern.nodes()) {
    taken_.resize(nodes_.size());
  }

  bool run(FusedOp* last) { return matches(nodes_.size() - 1, last); }

  std::vector<FusedOp*> fused_ops() const {
    std::vector<FusedOp*> found;
    for (const auto& fused_op : graph_.fused_ops()) {
      if (std::find(taken_.begin(), taken_.end(), fused_op.get()) != taken_.end())
        found.push_back(fused_op.get());
    }
    return found;
  }

  /// Down the last operand that is not a wildcard.
  FusedOp* root() const {
    size_t at = nodes_.size() - 1;
    for (bool moved = true; moved;) {
      moved = false;
      for (const size_t input : nodes_[at].inputs) {
        if (nodes_[input].op == kWildcard) continue;
        at = input;
        moved = true;
      }
    }
    return taken_[at];
  }

 private:
  bool matches(size_t index, FusedOp* fused_op) {
    const PatternNode& node = nodes_[index];
    if (fused_op == nullptr || !fused_op->goes_by(node.op)) return false;
    if (taken_[index] != nullptr && taken_[index] != fused_op) return false;  // one result, used twice
    taken_[index] = fused_op;
    if (node.inputs.empty()) return true;
    if (node.inputs.size() != fused_op->args.size()) return false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (nodes_[node.inputs[i]].op == kWildcard) continue;
      const Value* arg = fused_op->args[i];
      if (arg == nullptr || !has_one_user(node.inputs[i], *arg)) return false;
      if (!matches(node.inputs[i], graph_.producer(arg))) return false;
    }
    return true;
  }

  /// Inner results must not be read from outside: they would have to exist as quantized values too.
  bool has_one_user(size_t index, const Value& value) const {
    const std::set<const Node*> users(value.users().begin(), value.users().end());
    const auto uses = std::count_if(nodes_.begin(), nodes_.end(), [&](const PatternNode& node) {
      return std::find(node.inputs.begin(), node.inputs.end(), index) != node.inputs.end();
    });
    return users.size() <= static_cast<size_t>(std::max<int64_t>(uses, 1));
  }

  const FusedOpGraph& graph_;
  const std::vector<PatternNode>& nodes_;
  std::vector<FusedOp*> taken_;
};

}  // namespace

std::vector<Value*> PatternMatch::inputs() const {
  std::set<const Value*> inside;
  for (const FusedOp* fused_op : fused_ops) inside.insert(fused_op->output());
  std::vector<Value*> found;
  const auto add = [&](const FusedOp& fused_op) {
    for (Value* arg : fused_op.args) {
      const bool known = std::find(found.begin(), found.end(), arg) != found.end();
      if (arg != nullptr && !known && !inside.contains(arg)) found.push_back(arg);
    }
  };
  add(*root);
  for (const FusedOp* fused_op : fused_ops) add(*fused_op);
  return found;
}

std::vector<const BackendPatternConfig*> in_order_of_matching(
    const std::vector<BackendPatternConfig>& configs) {
  std::vector<const BackendPatternConfig*> order;
  for (const BackendPatternConfig& config : configs) order.push_back(&config);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return a->pattern().nodes().size() > b->pattern().nodes().size();
  });
  return order;
}

std::vector<PatternMatch> find_matches(const FusedOpGraph& graph,
                                       const std::vector<const BackendPatternConfig*>& configs) {
  std::vector<PatternMatch> found;
  std::unordered_set<const FusedOp*> taken;
  for (auto place = graph.fused_ops().rbegin(); place != graph.fused_ops().rend(); ++place) {
    FusedOp* fused_op = place->get();
    if (taken.contains(fused_op)) continue;
    for (const BackendPatternConfig* config : configs) {
      Attempt attempt(graph, config->pattern());
      if (!attempt.run(fused_op)) continue;
      PatternMatch match{config, attempt.fused_ops(), attempt.root()};
      const bool free = std::none_of(match.fused_ops.begin(), match.fused_ops.end(),
                                     [&](const FusedOp* each) { return taken.contains(each); });
      if (!free) continue;
      taken.insert(match.fused_ops.begin(), match.fused_ops.end());
      found.push_back(std::move(match));
      break;
    }
  }
  std::reverse(found.begin(), found.end());
  return found;
}

}  // namespace halftone::ptq
