// Unstable: for the command line only, may change in any version.
// Progress of long work, as a terminal shows it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "halftone/base/api.h"

namespace halftone {

/// One line of at most `width` columns: "[#####.....]  42/100  encoder.layer.3". No newline, no carriage
/// return.
HALFTONE_API std::string render_progress(int64_t done, int64_t total, std::string_view what, int width);

}  // namespace halftone
