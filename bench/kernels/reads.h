// Reading memory, as a candidate: in every round it says what the machine's memory gave in that round.
#pragma once

#include "candidate.h"

namespace halftone::bench {

inline constexpr const char* kReads = "reads";

/// Each call reads 16 MB of a buffer of 192 MB, the next call the next 16 MB. The buffer is made once and
/// kept.
Candidate reads_candidate(ParallelFor& parallel_for);

}  // namespace halftone::bench
