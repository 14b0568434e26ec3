// Bounds on what a model from outside may cost. They belong to the process: whatever runs a graph keeps them.
#pragma once

#include <cstdint>

namespace halftone {

/// No model that was seen comes near it.
inline constexpr int64_t kDefaultMaxSteps = 1'000'000;

/// How many steps a loop of a graph (while_loop, map, scan) may take in one call, the steps of loops inside
/// it included. One more is an error that names the node. kInvalidArgument for less than 1. Thread-safe.
void set_max_steps(int64_t steps);
int64_t max_steps();

}  // namespace halftone
