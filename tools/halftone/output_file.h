// The file that a command writes: refused before the work begins where it cannot be, or should not be,
// written.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace halftone::cli {

struct OutputOptions {
  std::string path;
  bool force = false;
};

/// Puts -o and --force on a subcommand. `what`: "The checkpoint to write".
void add_output_options(CLI::App& command, OutputOptions& options, const std::string& what);

/// Throws where the output is the input's file and --force was not given (UsageError), where its folder is
/// missing or cannot be written to, and where it is a folder. An empty path is none.
void require_writable(const OutputOptions& output, const std::string& input);

}  // namespace halftone::cli
