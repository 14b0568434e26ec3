#include "common/runner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>

#include "common/console.h"
#include "common/model_file.h"
#include "common/stored_backend.h"
#include "halftone/base/error.h"
#include "halftone/cli/names.h"

namespace halftone::cli {

namespace {

std::string check_backend(const std::string& name) {
  const auto& known = run_backends();
  if (std::find(known.begin(), known.end(), name) != known.end()) return {};
  return fmt::format("unknown backend '{}'{}; known: {}", name, did_you_mean(name, known),
                     fmt::join(known, ", "));
}

Runner compiled_runner(const RunnerOptions& options, const std::shared_ptr<const GraphModule>& module,
                       Console& console) {
  auto compiled = compile(module, {.disabled_passes = options.disabled_passes});
  for (const std::string& line : compiled->log()) console.detail(line);
  return {"halftone", Session(module, compiled), compiled};
}

}  // namespace

const std::vector<std::string>& run_backends() {
  static const std::vector<std::string> names = {"eager", "halftone", "stored"};
  return names;
}

void add_backend_option(CLI::App& command, std::string& backend, const std::string& name) {
  command
      .add_option(name, backend,
                  fmt::format("What runs the graph: {} (default: the one that was\n"
                              "saved with a .ht file, as tune does; else halftone; where that\n"
                              "cannot compile it, eager)",
                              fmt::join(run_backends(), ", ")))
      ->type_name("NAME")
      ->check(CLI::Validator(check_backend, ""));
}

void check_passes(const std::vector<std::string>& disabled) {
  std::vector<std::string> known;
  for (const PassInfo& pass : compile_passes()) known.push_back(pass.name);
  for (const std::string& pass : disabled) require_known("--disable-pass", pass, known);
}

Runner make_runner(const RunnerOptions& options, Console& console) {
  const std::string& asked = options.backend;
  if (asked.empty() || asked == "stored") {
    if (const std::optional<Backend> backend = try_stored_backend(options.model)) {
      console.detail(fmt::format("as it was saved: {}", backend->describe()));
      return {backend->describe(), backend->session()};
    }
    if (!asked.empty()) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{}: no backend was saved with it: give --backend eager or halftone",
                              options.model.path));
    }
  }
  const std::shared_ptr<const GraphModule> module = open_model(options.model);
  if (asked == "eager") return {asked, Session(module)};
  try {
    return compiled_runner(options, module, console);
  } catch (const Error& error) {
    if (!asked.empty()) throw;
    console.info(fmt::format("it is not compiled and runs in the interpreter: {}", error.what()));
    return {"eager", Session(module)};
  }
}

void say_what_is_left(const CompiledGraph& compiled, const std::vector<c10::IValue>& inputs,
                      Console& console) {
  const PlanReport report = compiled.report(inputs);
  if (!report.interpreted.empty()) {
    console.info(fmt::format("the whole graph runs in the interpreter: {}", report.interpreted));
  }
  for (const std::string& line : report.left_to_aten) console.detail(fmt::format("left to ATen: {}", line));
}

}  // namespace halftone::cli
