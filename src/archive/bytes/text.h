// Text from untrusted files: whether it is UTF-8, and how it goes into messages.
#pragma once

#include <string>
#include <string_view>

namespace halftone {

/// Well-formed UTF-8: no overlong forms, no surrogates, nothing past U+10FFFF.
bool is_utf8(std::string_view text);

/// The text between quotes, shortened to 200 bytes, with control characters and broken UTF-8 spelled out as
/// \xNN.
std::string quote_text(std::string_view text);

}  // namespace halftone
