// min_cut_rematerialization_partition(): a minimum cut, relaxed until the memory budget is met.
#include <algorithm>

#include "autograd/partition/bytes.h"
#include "autograd/partition/cut.h"
#include "autograd/partition/default_choice.h"
#include "autograd/partition/joint_nodes.h"
#include "autograd/partition/operator_classes.h"
#include "autograd/partition/saved_views.h"
#include "autograd/partition/simplify.h"
#include "autograd/partition/split.h"
#include "base/errors.h"

namespace halftone {
namespace partition {
namespace {

// Finer than this, a budget is not met: each step solves a network.
constexpr size_t kMaxSteps = 48;

class Chooser {
 public:
  explicit Chooser(const JointNodes& joint_nodes) : joint_nodes_(joint_nodes) {}

  ValueSet choose(double budget) {
    const ValueSet most = usual_choice();
    if (budget >= 1) return most;
    const ValueSet least = cut({.anything = true}, Weight::kBytes);
    if (budget <= 0) return least;
    const auto lowest = static_cast<double>(bytes_kept_alive(least));
    const double limit =
        lowest + budget * std::max(static_cast<double>(bytes_kept_alive(most)) - lowest, 0.0);
    const auto fits = [&](const ValueSet& saved) {
      return static_cast<double>(bytes_kept_alive(saved)) <= limit;
    };
    if (fits(most)) return most;
    RecomputeRules rules = {
        .not_if_materialized = false, .not_if_used_far_apart = false, .not_in_long_chains = false};
    for (const bool only_cheap : {true, false}) {
      rules.only_cheap = only_cheap;
      if (ValueSet saved = cut(rules, Weight::kBytes); fits(saved)) return saved;
    }
    // Allow more and more operators, those first that free most memory for the work of running them again.
    const std::vector<size_t> candidates = cheapest_first(rules);
    rules.allowed.assign(joint_nodes_.size(), false);
    const size_t step = std::max<size_t>(1, candidates.size() / kMaxSteps);
    for (size_t i = 0; i < candidates.size(); ++i) {
      rules.allowed[candidates[i]] = true;
      if ((i + 1) % step != 0) continue;
      if (ValueSet saved = cut(rules, Weight::kBytes); fits(saved)) return saved;
    }
    return least;
  }

 private:
  // The costs of the usual cut are not bytes alone: it may save more than recomputing nothing does.
  ValueSet usual_choice() const {
    ValueSet saved = cut({}, Weight::kHeuristic);
    ValueSet otherwise = saved_by_default(joint_nodes_);
    return bytes_kept_alive(saved) <= bytes_kept_alive(otherwise) ? saved : otherwise;
  }

  ValueSet cut(const RecomputeRules& rules, Weight weight) const {
    return without_needless_views(cheapest_cut(joint_nodes_, rules, weight));
  }

  // What the rules keep back although it could run again.
  std::vector<size_t> cheapest_first(const RecomputeRules& rules) const {
    const std::vector<bool> kept = computed_in_forward_only(joint_nodes_, rules);
    std::vector<std::pair<double, size_t>> order;
    for (size_t i = 0; i < joint_nodes_.size(); ++i) {
      const JointNode& joint_node = joint_nodes_[i];
      if (!kept[i] || joint_node.node == nullptr || runs_once(*joint_node.node)) continue;
      int64_t bytes = 0;
      for (const Value* output : joint_node.node->outputs()) {
        if (try_element_count(*output)) bytes += bytes_of(*output);
      }
      order.emplace_back(estimated_work(*joint_node.node) / static_cast<double>(std::max<int64_t>(bytes, 1)),
                         i);
    }
    std::sort(order.begin(), order.end());
    std::vector<size_t> indices;
    for (const auto& [work, index] : order) indices.push_back(index);
    return indices;
  }

  const JointNodes& joint_nodes_;
};

}  // namespace
}  // namespace partition

PartitionedGraphs min_cut_rematerialization_partition(const JointGraph& joint, const MinCutOptions& options) {
  if (!(options.memory_budget >= 0 && options.memory_budget <= 1)) {
    fail(ErrorCode::kInvalidArgument, "a memory budget lies between 0 and 1, and {} does not",
         options.memory_budget);
  }
  const JointGraph simple = partition::simplified(joint);
  const partition::JointNodes joint_nodes(simple);
  const partition::ValueSet saved = partition::Chooser(joint_nodes).choose(options.memory_budget);
  // What backward computed for itself may now be forward's, and too costly for the rules to run again.
  const partition::ValueSet otherwise = partition::saved_by_default(partition::JointNodes(joint));
  if (partition::bytes_kept_alive(otherwise) < partition::bytes_kept_alive(saved))
    return default_partition(joint);
  return partition::split_joint(simple, saved, joint_nodes.backward_side_effects());
}

}  // namespace halftone
