// Which operators of the forward pass may run again in backward.
#pragma once

#include <vector>

#include "autograd/partition/joint_nodes.h"

namespace halftone::partition {

/// Each rule keeps some operator from being run again although it could be. The defaults are those of
/// torch._functorch's min-cut: a value is recomputed only if a compiler could fold that into the loop that
/// reads it.
struct RecomputeRules {
  bool only_cheap = true;             ///< else: all but the compute-intensive ones
  bool not_if_materialized = true;    ///< an operator that cannot fuse with it would read it in backward
  bool not_if_used_far_apart = true;  ///< what it reads is also used nearer, before an unfusible operator
  bool not_in_long_chains = true;     ///< chains of fusible operators through the whole model
  bool not_reductions = true;         ///< results much smaller than operands: cheap to keep
  std::vector<bool> allowed;          ///< joint nodes that no rule keeps back; empty: none
  bool anything = false;              ///< no rule but: random ones, writes and checks run once
};

/// For each joint node, whether it has to be computed in forward: primals, what must run once, and what the rules
/// keep back. Views never are.
std::vector<bool> computed_in_forward_only(const JointNodes& joint_nodes, const RecomputeRules& rules);

/// Whether `user` could read `joint node` from registers.
bool can_fuse(const JointNode& joint_node, const JointNode& user);

}  // namespace halftone::partition
