// The candidates of a tuning.
#pragma once

#include <vector>

#include "halftone/tune/tune.h"

namespace halftone {

bool is_eager_baseline(const BackendRecipe& recipe);
bool is_fp32_baseline(const BackendRecipe& recipe);

/// Eager, fp32, then the wanted others (the default ones if none are) as far as the strategy takes them.
/// kInvalidArgument for candidates without a name or a recipe, for two of one name, and for a Strategy::only
/// that is none of them.
std::vector<TuneCandidate> candidates_to_try(const std::vector<TuneCandidate>& wanted,
                                             const Strategy& strategy);

}  // namespace halftone
