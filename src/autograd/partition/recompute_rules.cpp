#include "autograd/partition/recompute_rules.h"

#include <algorithm>
#include <set>
#include <utility>

#include "autograd/partition/bytes.h"
#include "autograd/partition/operator_classes.h"

namespace halftone::partition {
namespace {

// A reduction is what gives this many times less than it takes.
constexpr int64_t kReductionFactor = 4;
// Fusible operators in a row, after which a chain is cut.
constexpr size_t kLongChain = 100;

bool fuses(const Unit& unit) {
  return unit.node != nullptr && (unit.is_element || is_fusible(*unit.node));
}

bool is_view(const Unit& unit) {
  return unit.node != nullptr && viewed_operand(*unit.node) != nullptr;
}

int64_t bytes_or_none(const Value* value) {
  return value != nullptr && try_element_count(*value) ? bytes_of(*value) : 0;
}

class Rules {
 public:
  Rules(const JointUnits& units, const RecomputeRules& rules)
      : units_(units), rules_(rules), kept_(units.size(), false) {}

  std::vector<bool> run() {
    for (size_t i = 0; i < units_.size(); ++i) {
      const Unit& unit = units_[i];
      kept_[i] = unit.is_primal || (unit.is_forward && must_stay(i));
    }
    if (rules_.anything) return std::move(kept_);
    if (rules_.not_if_used_far_apart) keep_what_is_used_far_apart();
    if (rules_.not_in_long_chains) keep_in_long_chains();
    return std::move(kept_);
  }

 private:
  bool must_stay(size_t index) const {
    const Unit& unit = units_[index];
    if (unit.node == nullptr || unit.is_element || is_view(unit)) return false;
    if (runs_once(*unit.node)) return true;
    if (is_free_of_rules(index) || !is_saveable(unit)) return false;
    if (rules_.only_cheap ? !is_cheap(*unit.node) : is_compute_intensive(*unit.node)) return true;
    if (rules_.not_if_materialized && is_materialized_in_backward(index)) return true;
    return rules_.not_reductions && is_reduction(unit);
  }

  bool is_free_of_rules(size_t index) const {
    return rules_.anything || (!rules_.allowed.empty() && rules_.allowed[index]);
  }

  // A number, and a list that is read as a list, cannot be saved and have to be computed again.
  bool is_saveable(const Unit& unit) const {
    if (unit.is_saveable()) return true;
    return !unit.users.empty() && std::all_of(unit.users.begin(), unit.users.end(), [&](size_t user) {
      return units_[user].is_element && units_[user].is_saveable();
    });
  }

  bool keep(size_t index) {
    const Unit& unit = units_[index];
    if (is_view(unit) || is_free_of_rules(index) || !is_saveable(unit)) return false;
    kept_[index] = true;
    return true;
  }

  // Whether it, or a view of it, is read outside of the forward pass by something that needs it in memory.
  bool is_materialized_in_backward(size_t index) const {
    std::vector<size_t> same_memory = {index};
    while (!same_memory.empty()) {
      const Unit& unit = units_[same_memory.back()];
      same_memory.pop_back();
      if (unit.leaves()) return true;
      for (const size_t user : unit.users) {
        if (!units_[user].is_forward && !can_fuse(unit, units_[user])) return true;
        if (is_view(units_[user])) same_memory.push_back(user);
      }
    }
    return false;
  }

  static bool is_reduction(const Unit& unit) {
    if (unit.value != nullptr && !unit.is_saveable()) return false;
    int64_t taken = 0;
    for (const NamedArgument& input : unit.node->inputs()) taken += bytes_or_none(input.value.value());
    int64_t given = 0;
    for (const Value* output : unit.node->outputs()) given += bytes_or_none(output);
    return given * kReductionFactor < taken;
  }

  // The first unit, in the order of the trace, that reads something of `starts` in a way that cannot be
  // fused; `last` if there is none before it.
  size_t first_unfusible(const std::vector<size_t>& starts, size_t last) const {
    std::set<std::pair<size_t, bool>> reached;  // with whether it could be fused with what it reads
    for (const size_t start : starts) reached.emplace(start, true);
    while (!reached.empty()) {
      const auto [index, fused] = *reached.begin();
      reached.erase(reached.begin());
      if (!fused) return index;
      for (const size_t user : units_[index].users) {
        if (units_[user].is_forward && user <= last)
          reached.emplace(user, can_fuse(units_[index], units_[user]));
      }
    }
    return last;
  }

  void keep_what_is_used_far_apart() {
    for (const Unit& used : units_.units()) {
      if (!used.is_forward) continue;
      std::vector<size_t> users;
      for (const size_t user : used.users) {
        if (units_[user].is_forward) users.push_back(user);
      }
      if (users.empty()) continue;
      const size_t border = first_unfusible(users, *std::max_element(users.begin(), users.end()));
      for (const size_t user : users) {
        if (user > border && !kept_[user] && can_fuse(used, units_[user])) keep(user);
      }
    }
  }

  void keep_in_long_chains() {
    std::vector<size_t> order(units_.size(), 0);
    for (size_t i = 1; i < units_.size(); ++i) order[i] = order[i - 1] + (units_[i - 1].is_forward ? 1 : 0);
    std::vector<bool> visited(units_.size(), false);
    for (size_t start = 0; start < units_.size(); ++start) {
      if (!units_[start].is_forward) continue;
      std::set<size_t> chain = {start};
      while (!chain.empty()) {
        const size_t current = *chain.begin();
        chain.erase(chain.begin());
        if (visited[current]) continue;
        visited[current] = true;
        // Only if the chain is one value wide: cut there, one value is saved.
        if (order[current] > order[start] + kLongChain && chain.empty()) {
          keep(current);
          break;
        }
        for (const size_t user : units_[current].users) {
          if (units_[user].is_forward && !kept_[user] && can_fuse(units_[current], units_[user]))
            chain.insert(user);
        }
      }
    }
  }

  const JointUnits& units_;
  const RecomputeRules& rules_;
  std::vector<bool> kept_;
};

}  // namespace

bool can_fuse(const Unit& unit, const Unit& user) {
  if (user.node != nullptr && !user.is_element && absorbs_producers(*user.node)) return true;
  return fuses(unit) && fuses(user);
}

std::vector<bool> computed_in_forward_only(const JointUnits& units, const RecomputeRules& rules) {
  return Rules(units, rules).run();
}

}  // namespace halftone::partition
