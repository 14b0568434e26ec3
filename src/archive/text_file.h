// Whole small files, as text.
#pragma once

#include <string>
#include <string_view>

namespace halftone {

std::string read_text_file(const std::string& path);                   ///< kNotFound or kIo, naming the path
void write_text_file(const std::string& path, std::string_view text);  ///< atomically

}  // namespace halftone
