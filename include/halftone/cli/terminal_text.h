// Unstable: for the command line only, may change in any version.
// Text from anywhere, made fit for a terminal.
#pragma once

#include <string>
#include <string_view>

#include "halftone/base/api.h"

namespace halftone {

/// One line that does nothing to a terminal: control characters, line and paragraph separators, characters
/// that turn the writing direction and invisible ones are spelled out (`\n`, `\x1b`, `\u202e`). Cut in the
/// middle to `longest` code points where it is longer.
HALFTONE_API std::string terminal_text(std::string_view text, int longest = 400);

}  // namespace halftone
