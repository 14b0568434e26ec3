// A joint graph and the choice of what to save, made into two graphs.
#pragma once

#include <unordered_set>

#include "autograd/partition/bytes.h"
#include "halftone/autograd/joint_graph.h"

namespace halftone::partition {

using NodeSet = std::unordered_set<const Node*>;

/// What backward needs and finds neither in `saved` nor among primals and tangents is computed there, as late
/// as possible; of `saved`, what it does not need is dropped. `runs_in_backward`: nodes with side effects
/// that belong to backward; all other such nodes stay in forward (kInternal where backward would have to run
/// one of them). Whoever runs the graphs lints them, whichever partitioner they come from.
PartitionedGraphs split_joint(const JointGraph& joint, const ValueSet& saved,
                              const NodeSet& runs_in_backward);

}  // namespace halftone::partition
