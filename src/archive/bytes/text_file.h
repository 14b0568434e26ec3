// Whole small files, as text. Reading is public: halftone/cli/text_file.h.
#pragma once

#include <string>
#include <string_view>

#include "halftone/cli/text_file.h"

namespace halftone {

void write_text_file(const std::string& path, std::string_view text);  ///< atomically

}  // namespace halftone
