// The file that a command writes: refused before the work begins if it cannot be, or should not be,
// written.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace halftone::cli {

struct OutputOptions {
  std::string path;
  bool force = false;
  bool replaces = false;  ///< a new file takes its place when all of it is written: a device cannot be one
};

/// What the command reads: an output must not replace it unasked.
struct FilesRead {
  std::string model;
  std::vector<std::string> others = {};  ///< inputs, plans, expectations
};

/// Puts -o and --force on a subcommand. `what`: "The checkpoint to write".
void add_output_options(CLI::App& command, OutputOptions& options, const std::string& what);
/// Puts --force alone on a subcommand.
void add_force_option(CLI::App& command, bool& force);

/// Throws if the output is a file that is read and --force was not given (UsageError), where its folder is
/// missing or cannot be written to, if it is a folder, and if it is a device that would have to be replaced. An
/// empty path is none.
void require_writable(const OutputOptions& output, const FilesRead& read);

}  // namespace halftone::cli
