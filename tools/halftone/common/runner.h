// Runs a model's calls: the backend that was saved with a file, the compiled model, or the interpreter.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/command_line.h"
#include "halftone/compile/compile.h"
#include "halftone/graph/graph_module.h"

namespace halftone::cli {

class Console;

struct RunnerOptions {
  ModelOptions model;
  /// Empty: the one that was saved with the file, else halftone, else (where that cannot compile it) eager.
  std::string backend;
  std::vector<std::string> disabled_passes;
};

struct Runner {
  std::string backend;  ///< as messages name it
  Session session;
  std::shared_ptr<const CompiledGraph> compiled = nullptr;  ///< of the halftone backend
};

/// "eager", "halftone", "stored".
const std::vector<std::string>& run_backends();
/// Puts --backend, or an option of another name for the same, on a subcommand.
void add_backend_option(CLI::App& command, std::string& backend, const std::string& name = "--backend");

/// UsageError for an unknown pass, before the model is opened.
void check_passes(const std::vector<std::string>& disabled);
/// Where the default has to be another than halftone, an information says why.
Runner make_runner(const RunnerOptions& options, Console& console);

/// What did not become native: a whole graph that is interpreted is worth a message, single operators with
/// --verbose.
void say_what_is_left(const CompiledGraph& compiled, const std::vector<c10::IValue>& inputs,
                      Console& console);

}  // namespace halftone::cli
