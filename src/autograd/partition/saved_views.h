// Which of several values that share memory to save.
#pragma once

#include "autograd/partition/bytes.h"

namespace halftone::partition {

/// Views are made again in backward, which costs nothing, where that saves memory: the base alone is kept
/// where it is a primal, where it is saved anyway, and where its views together are no smaller. All of
/// `saved` must come from the forward pass.
ValueSet without_needless_views(const ValueSet& saved);

}  // namespace halftone::partition
