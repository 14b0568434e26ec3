#include "tune_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "halftone/error.h"

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

void require_folder_of(const std::string& path) {
  if (path.empty()) return;
  const fs::path folder = fs::path(path).parent_path();
  std::error_code ignored;
  if (!folder.empty() && !fs::is_directory(folder, ignored))
    throw Error(ErrorCode::kIo, fmt::format("{}: there is no folder {}", path, folder.string()));
  const bool is_there = fs::exists(path, ignored);
  if (fs::is_directory(path, ignored)) throw Error(ErrorCode::kIo, fmt::format("{}: is a folder", path));
  // A new file needs the folder; so does one that replaces another atomically.
  const std::string place = folder.empty() ? "." : folder.string();
  if (access(place.c_str(), W_OK | X_OK) != 0 && (!is_there || access(path.c_str(), W_OK) != 0))
    throw Error(ErrorCode::kIo,
                fmt::format("{}: the folder {} cannot be written to: {}", path, place, std::strerror(errno)));
}

void write_text(const std::string& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw Error(ErrorCode::kIo, fmt::format("{}: cannot be written", path));
}

int64_t file_bytes(const std::string& path) {
  return static_cast<int64_t>(fs::file_size(path));
}

}  // namespace halftone::cli
