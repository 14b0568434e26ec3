// Our attention as a contender of the benchmark.
#pragma once

#include "contender.h"

namespace halftone::bench {

Contender attention(const Shape& shape, Splitter& splitter);

}  // namespace halftone::bench
