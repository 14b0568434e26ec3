// Reading memory, as a contender: in every round it says what the machine's memory gave in that round.
#pragma once

#include "contender.h"

namespace halftone::bench {

inline constexpr const char* kReads = "reads";

/// Each call reads 16 MB of a buffer of 192 MB, the next call the next 16 MB. The buffer is made once and
/// kept.
Contender reads_contender(Splitter& splitter);

}  // namespace halftone::bench
