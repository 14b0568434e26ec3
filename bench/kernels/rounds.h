// Rounds of a case, each with a look at whether the machine gave every thread a core.
#pragma once

#include <functional>
#include <vector>

#include "report.h"

namespace halftone::bench {

/// Calls `round`, which adds to the samples, until so many rounds are kept, or three times as many were run:
/// then the last ones are kept, disturbed or not. A round is disturbed when the threads' multiply-adds right
/// before or right after it are below 85 % of `peaks`. One thread, timed by its processor time, is never
/// disturbed. Returns how many rounds were dropped.
int run_rounds(ParallelFor& parallel_for, const Peaks& peaks, int rounds, std::vector<Sample>& samples,
               const std::function<void()>& round);

}  // namespace halftone::bench
