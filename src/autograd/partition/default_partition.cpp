// default_partition(): saves what backward reads, and computes only views again.
#include "autograd/partition/default_choice.h"
#include "autograd/partition/joint_nodes.h"
#include "autograd/partition/saved_views.h"
#include "autograd/partition/split.h"

namespace halftone {
namespace partition {
namespace {

// Where the trace ran it: in the backward pass only what needs a tangent, or stands after the first backward
// node and no result needs it.
bool runs_in_forward(const JointNode& joint_node) {
  return joint_node.is_forward || (!joint_node.needs_tangent && !joint_node.in_backward_part);
}

bool backward_reads(const JointNode& joint_node, const JointNodes& joint_nodes) {
  if (joint_node.is_gradient) return true;
  for (const size_t user : joint_node.users) {
    if (!runs_in_forward(joint_nodes[user])) return true;
  }
  return false;
}

}  // namespace

ValueSet saved_by_default(const JointNodes& joint_nodes) {
  ValueSet saved;
  std::vector<bool> wanted(joint_nodes.size(), false);
  // From the back: what cannot be saved (lists, numbers) is computed again from what can.
  for (size_t i = joint_nodes.size(); i-- > 0;) {
    const JointNode& joint_node = joint_nodes[i];
    if (!runs_in_forward(joint_node) || !(wanted[i] || backward_reads(joint_node, joint_nodes))) continue;
    if (joint_node.is_saveable()) {
      saved.insert(joint_node.value);
    } else {
      for (const size_t input : joint_node.inputs) wanted[input] = true;
    }
  }
  return without_needless_views(saved);
}

}  // namespace partition

PartitionedGraphs default_partition(const JointGraph& joint) {
  const partition::JointNodes joint_nodes(joint);
  return partition::split_joint(joint, partition::saved_by_default(joint_nodes),
                                joint_nodes.backward_side_effects());
}

}  // namespace halftone
