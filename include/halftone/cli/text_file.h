// Unstable: for the command line only, may change in any version.
// Small files as text: what the program and the library read configs, plans, caches and statistics with.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "halftone/base/api.h"

namespace halftone {

/// No config, plan or cache that Halftone writes comes near it.
inline constexpr size_t kLongestTextFile = size_t{256} << 20;

/// The whole file. Only regular files are read: a pipe, a device or a folder is an error at once and never
/// waited for. kNotFound or kIo, naming the path; kUnsupported for a file of more than `max_bytes` bytes.
HALFTONE_API std::string read_text_file(const std::string& path, size_t max_bytes = kLongestTextFile);

/// The first bytes of a file, as many as there are up to `bytes`. Refuses what read_text_file() refuses, but
/// for the size.
HALFTONE_API std::string read_file_start(const std::string& path, size_t bytes);

inline constexpr std::string_view kUnknownFileKind = "a file of an unknown kind";
/// What a file with these first bytes seems to be, for messages: "a Python pickle", "an empty file".
HALFTONE_API std::string_view file_kind(std::string_view head);

}  // namespace halftone
