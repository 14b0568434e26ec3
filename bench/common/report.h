// Measurements of a model at a shape, as text or as JSON lines like those of bench/peers.
#pragma once

#include <cstdint>
#include <vector>

#include "common/candidate.h"

namespace halftone::bench {

/// {"peer": "halftone-fp32", "case": [1, 16], "ms": …} a line; or a line of text with the speed-up over the
/// first one.
void print_measurements(const std::vector<int64_t>& shape, const std::vector<Measurement>& rows, bool json);

/// Instruction set, threads, and how long each candidate took to compile.
void print_compile_times(const std::vector<Candidate>& candidates);

}  // namespace halftone::bench
