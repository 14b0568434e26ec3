// The candidates of a tuning.
#pragma once

#include <vector>

#include "halftone/tune.h"

namespace halftone {

bool is_eager_baseline(const BackendKind& kind);
bool is_fp32_baseline(const BackendKind& kind);

/// Eager, fp32, then the wanted others (the default ones if none are) as far as the strategy takes them.
/// kInvalidArgument for candidates without a name or a kind, for two of one name, and for a Strategy::only
/// that is none of them.
std::vector<TuneCandidate> candidates_to_try(const std::vector<TuneCandidate>& wanted,
                                             const Strategy& strategy);

}  // namespace halftone
