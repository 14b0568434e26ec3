// The bound on names in files from outside.
#pragma once

#include <cstddef>

namespace halftone {

/// In bytes. Longer ones are an attack on whoever prints them: names stand in tables and messages.
inline constexpr size_t kLongestName = 4096;

}  // namespace halftone
