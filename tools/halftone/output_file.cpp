#include "output_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "command_line.h"

namespace halftone::cli {

void add_output_options(CLI::App& command, OutputOptions& options, const std::string& what) {
  command.add_option("-o,--output", options.path, what)->type_name("OUT.ht");
  command.add_flag("--force", options.force, "Write the output even over the model that is read");
}

void require_writable(const OutputOptions& output, const std::string& input) {
  namespace fs = std::filesystem;
  if (output.path.empty()) return;
  std::error_code ignored;
  if (!output.force && fs::equivalent(output.path, input, ignored)) {
    throw UsageError(fmt::format(
        "-o {} is the model itself, which would be lost: choose another name, or give --force", output.path));
  }
  if (fs::is_directory(output.path, ignored))
    throw Error(ErrorCode::kIo, fmt::format("{}: is a directory", output.path));
  const fs::path parent = fs::path(output.path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  if (!fs::is_directory(folder, ignored))
    throw Error(ErrorCode::kNotFound, fmt::format("{}: no such folder", folder));
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    throw Error(ErrorCode::kIo,
                fmt::format("{}: cannot be written to: {}", folder, std::generic_category().message(errno)));
  }
}

}  // namespace halftone::cli
