// The cheapest set of saved values as a minimum cut. Source side: computed in forward only; sink side:
// available in backward. Each joint node has an edge from "computed in backward" to "available in backward" whose
// capacity is the cost of saving it: a cut through that edge means that the value is saved. All other edges
// are infinite, so that a cut can only go through such edges: what is computed in backward needs its
// operands there (available → computed of each user), what depends on tangents is computed in backward,
// what may not run twice is computed in forward. Recomputing costs nothing here; RecomputeRules forbid it
// if it would be slow.
#include "autograd/partition/cut.h"

#include <algorithm>
#include <cmath>

#include "autograd/partition/bytes.h"
#include "autograd/partition/max_flow.h"
#include "autograd/partition/operator_classes.h"
#include "base/errors.h"

namespace halftone::partition {
namespace {

// With each operator between a value and backward, saving it costs that much more.
constexpr double kDistanceFactor = 1.1;
// Bounds the exponent: 1.1^100 is 14,000, and costs must stay far below kInfinite.
constexpr size_t kMaxDistance = 100;

bool reaches_memory(const JointNodes& joint_nodes, const JointNode& joint_node) {
  return joint_node.leaves() ||
         std::any_of(joint_node.users.begin(), joint_node.users.end(),
                     [&](size_t user) { return !can_fuse(joint_node, joint_nodes[user]); });
}

FlowNetwork::Capacity cost_of(const JointNodes& joint_nodes, const JointNode& joint_node, Weight weight) {
  if (joint_node.is_primal) return 0;
  if (!joint_node.is_saveable()) return FlowNetwork::kInfinite;
  // It has no reader, so no path leads through it; its size may not even be known.
  if (joint_node.users.empty() && !joint_node.leaves()) return 0;
  const int64_t bytes = bytes_of(*joint_node.value);
  if (weight == Weight::kBytes) return bytes;
  const auto distance = static_cast<double>(std::clamp<size_t>(joint_node.distance, 1, kMaxDistance));
  const auto cost = static_cast<int64_t>(static_cast<double>(bytes) * std::pow(kDistanceFactor, distance));
  // A value that only fused operators read is never written; saving it adds a write and a read.
  return reaches_memory(joint_nodes, joint_node) ? cost : 2 * cost;
}

// Two vertices a joint node: it is computed in backward where the first is on the sink's side; it can be had there
// where the second is. Saved is what can be had but is not computed.
class Network {
 public:
  Network(const JointNodes& joint_nodes, const RecomputeRules& rules, Weight weight)
      : joint_nodes_(joint_nodes), kept_(computed_in_forward_only(joint_nodes, rules)) {
    source_ = flow_.add_vertex();
    sink_ = flow_.add_vertex();
    for (size_t i = 0; i < 2 * joint_nodes.size(); ++i) flow_.add_vertex();
    const auto once = joint_nodes.backward_side_effects();
    for (size_t i = 0; i < joint_nodes.size(); ++i) add(i, weight, once);
  }

  ValueSet solve() {
    if (flow_.max_flow(source_, sink_) >= FlowNetwork::kInfinite) {
      fail(ErrorCode::kUnsupported,
           "backward needs a list that a random operator gave, and lists cannot be saved");
    }
    // Of all minimum cuts the one nearest to the sink: everything that still reaches the sink in the
    // residual graph is in backward, so values are saved as late as possible.
    const std::vector<bool> in_backward = flow_.reaches_sink();
    ValueSet saved;
    for (size_t i = 0; i < joint_nodes_.size(); ++i) {
      if (!in_backward[computed(i)] && in_backward[had(i)]) saved.insert(joint_nodes_[i].value);
    }
    return saved;
  }

 private:
  static size_t computed(size_t joint_node) { return 2 + 2 * joint_node; }
  static size_t had(size_t joint_node) { return 3 + 2 * joint_node; }

  void add(size_t index, Weight weight, const NodeSet& once) {
    const JointNode& joint_node = joint_nodes_[index];
    constexpr auto kInfinite = FlowNetwork::kInfinite;
    if (joint_node.needs_tangent || once.contains(joint_node.node)) {
      flow_.add_edge(computed(index), sink_, kInfinite);
      if (joint_node.needs_tangent) return;
    }
    if (joint_node.is_gradient) flow_.add_edge(had(index), sink_, kInfinite);
    if (kept_[index]) flow_.add_edge(source_, computed(index), kInfinite);
    flow_.add_edge(computed(index), had(index), cost_of(joint_nodes_, joint_node, weight));
    for (const size_t user : joint_node.users) flow_.add_edge(had(index), computed(user), kInfinite);
  }

  const JointNodes& joint_nodes_;
  std::vector<bool> kept_;
  FlowNetwork flow_;
  size_t source_ = 0;
  size_t sink_ = 0;
};

}  // namespace

ValueSet cheapest_cut(const JointNodes& joint_nodes, const RecomputeRules& rules, Weight weight) {
  return Network(joint_nodes, rules, weight).solve();
}

}  // namespace halftone::partition
