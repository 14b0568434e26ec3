// The values to save if nothing but views is computed again.
#pragma once

#include "autograd/partition/bytes.h"
#include "autograd/partition/joint_nodes.h"

namespace halftone::partition {

/// What the forward pass computed and the backward pass reads; of values that share memory, as few as
/// suffice.
ValueSet saved_by_default(const JointNodes& joint_nodes);

}  // namespace halftone::partition
