// Limits for models from files. They belong to the process: every executor of graphs keeps them.
#pragma once

#include <cstdint>

#include "halftone/base/api.h"

namespace halftone {

/// Real models stay far below it.
inline constexpr int64_t kDefaultMaxSteps = 1'000'000;

/// How many steps a loop of a graph (while_loop, map, scan) may take in one call, the steps of loops inside
/// it included. One more is an error that names the node. kInvalidArgument for less than 1. Thread-safe.
HALFTONE_API void set_max_steps(int64_t steps);
HALFTONE_API int64_t max_steps();

}  // namespace halftone
