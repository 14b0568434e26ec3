// Names and messages from anywhere, made fit for pages; for files and terminals: archive/terminal_text.h.
#pragma once

#include <string>
#include <string_view>

#include "archive/bytes/terminal_text.h"

namespace halftone {

/// For HTML text and for attributes in double or single quotes.
std::string html_text(std::string_view text);

/// JSON that can stand inside <script>: no "<", ">" or "&", nor U+2028 and U+2029, is left as such. `json`
/// must be valid JSON, where all of them stand in strings only.
std::string json_for_script(std::string_view json);

}  // namespace halftone
