// halftone trial: the other end of tune --isolate. Hidden: programs call it, not people.
#include <CLI/CLI.hpp>
#include <memory>

#include "command_line.h"
#include "console.h"
#include "halftone/capture.h"
#include "halftone/tune.h"

namespace halftone::cli {

void add_trial(CLI::App& app, CommandLine& line) {
  auto libraries = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand("trial", "Build and run one candidate of tune --isolate");
  command->group("");
  add_library_option(*command, *libraries);
  // All that follows is for run_trial(): the config is JSON, which must not be taken for a list.
  command->prefix_command();
  command->callback([command, libraries, &line] {
    line.job = [libraries, arguments = command->remaining()](Console& console) {
      for (const std::string& library : *libraries) load_operator_library(library);
      console.result(run_trial(arguments) + "\n");
    };
  });
}

}  // namespace halftone::cli
