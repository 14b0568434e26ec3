#include "common/output_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "common/command_line.h"

namespace halftone::cli {

namespace fs = std::filesystem;

namespace {

void require_not_read(const std::string& output, const FilesRead& read) {
  std::error_code ignored;
  const auto is_output = [&](const std::string& path) { return fs::equivalent(output, path, ignored); };
  const bool is_model = is_output(read.model);
  if (!is_model && std::none_of(read.others.begin(), read.others.end(), is_output)) return;
  throw UsageError(fmt::format("{} is {}, which would be lost: choose another name, or give --force", output,
                               is_model ? "the model itself" : "read by this command too"));
}

/// Devices and pipes are written as they are; a file needs the folder, since a new one replaces it.
bool is_special(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored) && !fs::is_regular_file(path, ignored);
}

/// 0, or errno. A file is made in the folder and removed: access() says that root may write anywhere, also to
/// /proc and to file systems that are full.
int refusal_of(const std::string& path, const std::string& folder) {
  if (is_special(path)) return access(path.c_str(), W_OK) == 0 ? 0 : errno;
  std::string probe = (fs::path(folder) / ".halftone-XXXXXX").string();
  const int file = mkstemp(probe.data());
  if (file < 0) return errno;
  close(file);
  unlink(probe.c_str());
  return 0;
}

}  // namespace

void add_output_options(CLI::App& command, OutputOptions& options, const std::string& what) {
  command.add_option("-o,--output", options.path, what)->type_name("OUT.ht");
  options.replaces = true;
  add_force_option(command, options.force);
}

void add_force_option(CLI::App& command, bool& force) {
  command.add_flag("--force", force, "Write the output even over a file that is read");
}

void require_writable(const OutputOptions& output, const FilesRead& read) {
  if (output.path.empty()) return;
  if (!output.force) require_not_read(output.path, read);
  std::error_code ignored;
  if (fs::is_directory(output.path, ignored))
    throw Error(ErrorCode::kIo, fmt::format("{}: is a directory", output.path));
  if (output.replaces && is_special(output.path))
    throw Error(ErrorCode::kIo, fmt::format("{}: is not a regular file", output.path));
  const fs::path parent = fs::path(output.path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  if (!fs::is_directory(folder, ignored))
    throw Error(ErrorCode::kNotFound,
                fmt::format("{}: cannot be written: {}: no such folder", output.path, folder));
  if (const int error = refusal_of(output.path, folder); error != 0) {
    throw Error(ErrorCode::kIo, fmt::format("{}: cannot be written: {}: {}", output.path, folder,
                                            std::generic_category().message(error)));
  }
}

}  // namespace halftone::cli
