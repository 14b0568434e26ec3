// Names and messages from anywhere, made fit for files and terminals.
#pragma once

#include <string>
#include <string_view>

#include "halftone/cli/terminal_text.h"

namespace halftone {

/// The text as UTF-8: each byte that belongs to no well-formed sequence is spelled out (`\xff`). Text that is
/// UTF-8 comes back as it was.
std::string utf8_text(std::string_view text);

}  // namespace halftone
