// The cheapest set of values whose saving lets backward compute all the rest.
#pragma once

#include "autograd/partition/recompute_rules.h"
#include "autograd/partition/split.h"

namespace halftone::partition {

/// What a saved value costs.
enum class Weight {
  kBytes,      ///< its bytes
  kHeuristic,  ///< more, the earlier it was computed, and twice if it would never reach memory otherwise
};

/// Primals cost nothing. kUnsupported if backward needs what can be neither saved nor computed again.
ValueSet cheapest_cut(const JointNodes& joint_nodes, const RecomputeRules& rules, Weight weight);

}  // namespace halftone::partition
