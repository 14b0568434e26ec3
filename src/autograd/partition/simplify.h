// A joint graph without repeated and useless work.
#pragma once

#include "halftone/autograd/joint_graph.h"

namespace halftone::partition {

/// A copy in which equal nodes are one and nodes without use are gone. Nodes stay apart where outputs of the
/// graph would come to share memory.
JointGraph simplified(const JointGraph& joint);

}  // namespace halftone::partition
