// Names and messages from anywhere, made fit for files and terminals.
#pragma once

#include <string>
#include <string_view>

namespace halftone {

/// The text as UTF-8: each byte that belongs to no well-formed sequence is spelled out (`\xff`). Text that is
/// UTF-8 comes back as it was.
std::string utf8_text(std::string_view text);

/// One line that does nothing to a terminal: control characters, line and paragraph separators, characters
/// that turn the writing direction and invisible ones are spelled out (`\n`, `\x1b`, `\u202e`). Cut in the
/// middle to `longest` code points where it is longer.
std::string terminal_text(std::string_view text, int longest = 400);

}  // namespace halftone
