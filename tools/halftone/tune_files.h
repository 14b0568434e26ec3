// Files of tuning, autoquant and benchmarks: the caches, reports, this program itself.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace halftone::cli {

/// halftone/`what` in $XDG_CACHE_HOME, or else in ~/.cache; empty if there is no home.
std::string default_cache(const char* what);
/// The path of this program.
std::string own_program();

/// kIo, naming the file.
void write_text(const std::string& path, std::string_view text);
int64_t file_bytes(const std::string& path);

}  // namespace halftone::cli
