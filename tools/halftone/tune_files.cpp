#include "tune_files.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "halftone/base/error.h"

namespace halftone::cli {

namespace fs = std::filesystem;

namespace {

/// Relative ones mean nothing here: the XDG specification says to ignore them.
fs::path absolute_variable(const char* name) {
  const char* value = std::getenv(name);
  const fs::path path = value != nullptr ? value : "";
  return path.is_absolute() ? path : fs::path();
}

}  // namespace

std::string default_cache(const char* what) {
  fs::path base = absolute_variable("XDG_CACHE_HOME");
  if (base.empty()) {
    const fs::path home = absolute_variable("HOME");
    if (home.empty()) return {};
    base = home / ".cache";
  }
  return (base / "halftone" / what).string();
}

std::string own_program() {
  return fs::read_symlink("/proc/self/exe").string();
}

void write_text(const std::string& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file)
    throw Error(ErrorCode::kIo,
                fmt::format("{}: cannot be written: {}", path, std::generic_category().message(errno)));
}

int64_t file_bytes(const std::string& path) {
  return static_cast<int64_t>(fs::file_size(path));
}

}  // namespace halftone::cli
