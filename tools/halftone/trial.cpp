// halftone trial: the other end of tune --isolate. Hidden: programs call it, not people.
#include <CLI/CLI.hpp>
#include <memory>

#include "common/command_line.h"
#include "common/console.h"
#include "halftone/capture/capture.h"
#include "halftone/graph/limits.h"
#include "halftone/tune/tune.h"

namespace halftone::cli {

void add_trial(CLI::App& app, CommandLine& line) {
  auto libraries = std::make_shared<std::vector<std::string>>();
  auto max_steps = std::make_shared<int64_t>(0);
  CLI::App* command = app.add_subcommand("trial", "Build and run one candidate of tune --isolate");
  command->group("");
  add_library_option(*command, *libraries);
  add_steps_option(*command, *max_steps);
  // All that follows is for run_trial(): the config is JSON, which must not be taken for a list.
  command->prefix_command();
  command->callback([command, libraries, max_steps, &line] {
    line.job = [libraries, max_steps, arguments = command->remaining()](Console& console) {
      for (const std::string& library : *libraries) load_operator_library(library);
      if (*max_steps > 0) set_max_steps(*max_steps);
      console.result(run_trial(arguments) + "\n");
    };
  });
}

}  // namespace halftone::cli
