// Rounds of a case, each with a look at whether the machine gave every thread a core.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "report.h"

namespace halftone::bench {

struct Rounds {
  int kept = 0, dropped = 0;
  int wanted = 0;
  /// The rule of halftone/tune/measure.h, which this program without torch cannot include: fewer than six
  /// undisturbed rounds say nothing.
  bool too_busy() const { return kept < std::min(6, wanted); }
};

/// Calls `round`, which adds to the samples, until so many rounds are kept, or three times as many were run. A
/// round is disturbed, and dropped, when the threads' multiply-adds right before or right after it are below
/// 85 % of `peaks`. One thread, timed by its processor time, is never disturbed. HALFTONE_BUSY=ignore and
/// HALFTONE_BUSY=always mean what they mean elsewhere: no round is disturbed, all are.
Rounds run_rounds(ParallelFor& parallel_for, const Peaks& peaks, int rounds, std::vector<Sample>& samples,
                  const std::function<void()>& round);

}  // namespace halftone::bench
