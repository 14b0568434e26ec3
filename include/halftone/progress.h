// Progress of long work, as the library reports it and as a terminal shows it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace halftone {

/// Called by long operations: done units of total, and what is being worked on.
using ProgressCallback = std::function<void(int64_t done, int64_t total, std::string_view what)>;

/// One line of at most `width` columns: "[#####.....]  42/100  encoder.layer.3". No newline, no carriage
/// return.
std::string render_progress(int64_t done, int64_t total, std::string_view what, int width);

}  // namespace halftone
