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

bool fuses(const JointNode& joint_node) {
  return joint_node.node != nullptr && (joint_node.is_element || is_fusible(*joint_node.node));
}

bool is_view(const JointNode& joint_node) {
  return joint_node.node != nullptr && viewed_operand(*joint_node.node) != nullptr;
}

int64_t bytes_or_none(const Value* value) {
  return value != nullptr && try_element_count(*value) ? bytes_of(*value) : 0;
}

class Rules {
 public:
  Rules(const JointNodes& joint_nodes, const RecomputeRules& rules)
      : joint_nodes_(joint_nodes), rules_(rules), kept_(joint_nodes.size(), false) {}

  std::vector<bool> run() {
    for (size_t i = 0; i < joint_nodes_.size(); ++i) {
      const JointNode& joint_node = joint_nodes_[i];
      kept_[i] = joint_node.is_primal || (joint_node.is_forward && must_stay(i));
    }
    if (rules_.anything) return std::move(kept_);
    if (rules_.not_if_used_far_apart) keep_what_is_used_far_apart();
    if (rules_.not_in_long_chains) keep_in_long_chains();
    return std::move(kept_);
  }

 private:
  bool must_stay(size_t index) const {
    const JointNode& joint_node = joint_nodes_[index];
    if (joint_node.node == nullptr || joint_node.is_element || is_view(joint_node)) return false;
    if (runs_once(*joint_node.node)) return true;
    if (is_free_of_rules(index) || !is_saveable(joint_node)) return false;
    if (rules_.only_cheap ? !is_cheap(*joint_node.node) : is_compute_intensive(*joint_node.node)) return true;
    if (rules_.not_if_materialized && is_materialized_in_backward(index)) return true;
    return rules_.not_reductions && is_reduction(joint_node);
  }

  bool is_free_of_rules(size_t index) const {
    return rules_.anything || (!rules_.allowed.empty() && rules_.allowed[index]);
  }

  // A number, and a list that is read as a list, cannot be saved and have to be computed again.
  bool is_saveable(const JointNode& joint_node) const {
    if (joint_node.is_saveable()) return true;
    return !joint_node.users.empty() &&
           std::all_of(joint_node.users.begin(), joint_node.users.end(), [&](size_t user) {
             return joint_nodes_[user].is_element && joint_nodes_[user].is_saveable();
           });
  }

  bool keep(size_t index) {
    const JointNode& joint_node = joint_nodes_[index];
    if (is_view(joint_node) || is_free_of_rules(index) || !is_saveable(joint_node)) return false;
    kept_[index] = true;
    return true;
  }

  // Whether it, or a view of it, is read outside of the forward pass by something that needs it in memory.
  bool is_materialized_in_backward(size_t index) const {
    std::vector<size_t> same_memory = {index};
    while (!same_memory.empty()) {
      const JointNode& joint_node = joint_nodes_[same_memory.back()];
      same_memory.pop_back();
      if (joint_node.leaves()) return true;
      for (const size_t user : joint_node.users) {
        if (!joint_nodes_[user].is_forward && !can_fuse(joint_node, joint_nodes_[user])) return true;
        if (is_view(joint_nodes_[user])) same_memory.push_back(user);
      }
    }
    return false;
  }

  static bool is_reduction(const JointNode& joint_node) {
    if (joint_node.value != nullptr && !joint_node.is_saveable()) return false;
    int64_t taken = 0;
    for (const NamedArgument& input : joint_node.node->inputs()) taken += bytes_or_none(input.value.value());
    int64_t given = 0;
    for (const Value* output : joint_node.node->outputs()) given += bytes_or_none(output);
    return given * kReductionFactor < taken;
  }

  // The first joint node, in the order of the trace, that reads something of `starts` in a way that cannot be
  // fused; `last` if there is none before it.
  size_t first_unfusible(const std::vector<size_t>& starts, size_t last) const {
    std::set<std::pair<size_t, bool>> reached;  // with whether it could be fused with what it reads
    for (const size_t start : starts) reached.emplace(start, true);
    while (!reached.empty()) {
      const auto [index, fused] = *reached.begin();
      reached.erase(reached.begin());
      if (!fused) return index;
      for (const size_t user : joint_nodes_[index].users) {
        if (joint_nodes_[user].is_forward && user <= last)
          reached.emplace(user, can_fuse(joint_nodes_[index], joint_nodes_[user]));
      }
    }
    return last;
  }

  void keep_what_is_used_far_apart() {
    for (const JointNode& used : joint_nodes_.joint_nodes()) {
      if (!used.is_forward) continue;
      std::vector<size_t> users;
      for (const size_t user : used.users) {
        if (joint_nodes_[user].is_forward) users.push_back(user);
      }
      if (users.empty()) continue;
      const size_t border = first_unfusible(users, *std::max_element(users.begin(), users.end()));
      for (const size_t user : users) {
        if (user > border && !kept_[user] && can_fuse(used, joint_nodes_[user])) keep(user);
      }
    }
  }

  void keep_in_long_chains() {
    std::vector<size_t> order(joint_nodes_.size(), 0);
    for (size_t i = 1; i < joint_nodes_.size(); ++i)
      order[i] = order[i - 1] + (joint_nodes_[i - 1].is_forward ? 1 : 0);
    std::vector<bool> visited(joint_nodes_.size(), false);
    for (size_t start = 0; start < joint_nodes_.size(); ++start) {
      if (!joint_nodes_[start].is_forward) continue;
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
        for (const size_t user : joint_nodes_[current].users) {
          if (joint_nodes_[user].is_forward && !kept_[user] &&
              can_fuse(joint_nodes_[current], joint_nodes_[user]))
            chain.insert(user);
        }
      }
    }
  }

  const JointNodes& joint_nodes_;
  const RecomputeRules& rules_;
  std::vector<bool> kept_;
};

}  // namespace

bool can_fuse(const JointNode& joint_node, const JointNode& user) {
  if (user.node != nullptr && !user.is_element && absorbs_producers(*user.node)) return true;
  return fuses(joint_node) && fuses(user);
}

std::vector<bool> computed_in_forward_only(const JointNodes& joint_nodes, const RecomputeRules& rules) {
  return Rules(joint_nodes, rules).run();
}

}  // namespace halftone::partition
