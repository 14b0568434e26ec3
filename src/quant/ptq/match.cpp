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
  Attempt(const UnitGraph& graph, const Pattern& pattern) : graph_(graph), nodes_(pattern.nodes()) {
    taken_.resize(nodes_.size());
  }

  bool run(Unit* last) { return matches(nodes_.size() - 1, last); }

  std::vector<Unit*> units() const {
    std::vector<Unit*> found;
    for (const auto& unit : graph_.units()) {
      if (std::find(taken_.begin(), taken_.end(), unit.get()) != taken_.end()) found.push_back(unit.get());
    }
    return found;
  }

  /// Down the last operand that is not a wildcard.
  Unit* root() const {
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
  bool matches(size_t index, Unit* unit) {
    const PatternNode& node = nodes_[index];
    if (unit == nullptr || !unit->goes_by(node.op)) return false;
    if (taken_[index] != nullptr && taken_[index] != unit) return false;  // one result, used twice
    taken_[index] = unit;
    if (node.inputs.empty()) return true;
    if (node.inputs.size() != unit->args.size()) return false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (nodes_[node.inputs[i]].op == kWildcard) continue;
      const Value* arg = unit->args[i];
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

  const UnitGraph& graph_;
  const std::vector<PatternNode>& nodes_;
  std::vector<Unit*> taken_;
};

}  // namespace

std::vector<Value*> PatternMatch::inputs() const {
  std::set<const Value*> inside;
  for (const Unit* unit : units) inside.insert(unit->output());
  std::vector<Value*> found;
  const auto add = [&](const Unit& unit) {
    for (Value* arg : unit.args) {
      const bool known = std::find(found.begin(), found.end(), arg) != found.end();
      if (arg != nullptr && !known && !inside.contains(arg)) found.push_back(arg);
    }
  };
  add(*root);
  for (const Unit* unit : units) add(*unit);
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

std::vector<PatternMatch> find_matches(const UnitGraph& graph,
                                       const std::vector<const BackendPatternConfig*>& configs) {
  std::vector<PatternMatch> found;
  std::unordered_set<const Unit*> taken;
  for (auto place = graph.units().rbegin(); place != graph.units().rend(); ++place) {
    Unit* unit = place->get();
    if (taken.contains(unit)) continue;
    for (const BackendPatternConfig* config : configs) {
      Attempt attempt(graph, config->pattern());
      if (!attempt.run(unit)) continue;
      PatternMatch match{config, attempt.units(), attempt.root()};
      const bool free = std::none_of(match.units.begin(), match.units.end(),
                                     [&](const Unit* each) { return taken.contains(each); });
      if (!free) continue;
      taken.insert(match.units.begin(), match.units.end());
      found.push_back(std::move(match));
      break;
    }
  }
  std::reverse(found.begin(), found.end());
  return found;
}

}  // namespace halftone::ptq
