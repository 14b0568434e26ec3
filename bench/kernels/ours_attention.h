// Our attention as a candidate of the benchmark.
#pragma once

#include "candidate.h"

namespace halftone::bench {

Candidate attention(const Shape& shape, ParallelFor& parallel_for);

}  // namespace halftone::bench
