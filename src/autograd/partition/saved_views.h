// Which of several values that share memory to save.
#pragma once

#include "autograd/partition/bytes.h"

namespace halftone::partition {

/// Views are made again in backward, which costs nothing, if that saves memory: the base alone is kept
/// if it is a primal, if it is saved anyway, and if its views together are no smaller. All of
/// `saved` must come from the forward pass.
ValueSet without_needless_views(const ValueSet& saved);

}  // namespace halftone::partition
