// The inputs that each output of a joint graph depends on.
#pragma once

#include <vector>

#include "halftone/autograd/joint_graph.h"

namespace halftone {

/// For each primal: which tangents its gradient depends on. All false if it has no gradient.
std::vector<std::vector<bool>> tangents_behind_gradients(const JointGraph& joint);

}  // namespace halftone
