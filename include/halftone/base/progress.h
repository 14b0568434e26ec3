// Progress of long work, as the library reports it.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace halftone {

/// Called by long operations: done units of total, and what is being worked on.
using ProgressCallback = std::function<void(int64_t done, int64_t total, std::string_view what)>;

}  // namespace halftone
