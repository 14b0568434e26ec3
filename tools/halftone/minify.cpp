// halftone minify: the smallest graph on which a backend fails, and whether it still does.
#include "halftone/compile/minify.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "common/command_line.h"
#include "common/console.h"
#include "common/inputs.h"
#include "common/model_file.h"
#include "common/output_file.h"
#include "halftone/base/error.h"
#include "halftone/cli/message.h"
#include "halftone/cli/table.h"
#include "halftone/compile/compilers.h"

namespace halftone::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kMinifyDescription =
    "Find the smallest graph on which a backend fails\n\n"
    "A backend fails where it cannot compile the model, throws when it runs, or gives other numbers\n"
    "than the interpreter. The graph is cut down as long as it fails in the same way, and is written\n"
    "with its inputs into a folder. --check runs such a folder again: exit code 1 as long as the\n"
    "backend fails on it.";
constexpr const char* kMinifyExamples = R"(Examples:
  halftone minify model.pt2 --backend halftone -o failure
  halftone minify model.pt2 --backend ts --inputs odd.safetensors --tolerance 1e-4
  halftone minify --check failure --backend halftone)";

struct MinifyRequest {
  ModelOptions model;
  std::string backend;
  std::string inputs;
  std::string folder = "minified";
  std::string check;
  MinifyOptions minify;
};

Json failure_json(const BackendFailure& failure) {
  return {{"kind", to_string(failure.kind)}, {"message", failure.message}};
}

std::string describe(const BackendFailure& failure) {
  return fmt::format("{}: {}", to_string(failure.kind), failure.message);
}

/// The text form with long lines broken where a space stands outside of strings: it means the same.
std::string narrow(const std::string& graph) {
  std::string text;
  size_t column = 0;
  size_t space = std::string::npos;  // the last place in this line where it may be broken
  bool quoted = false;
  for (const char c : graph) {
    if (c == '"' && (text.empty() || text.back() != '\\')) quoted = !quoted;
    if (c == ' ' && !quoted && column > 2) space = text.size();
    text += c;
    column = c == '\n' ? 0 : column + 1;
    if (column == 0) space = std::string::npos;
    if (column <= kColumns || space == std::string::npos) continue;
    constexpr std::string_view kIndent = "\n      ";
    column = text.size() - space - 1 + kIndent.size() - 1;
    text.replace(space, 1, kIndent);
    space = std::string::npos;
  }
  return text;
}

MinifiedCase search(const MinifyRequest& options, const GraphCase& start, const GraphCompiler& backend,
                    Console& console) {
  MinifyOptions with_progress = options.minify;
  std::optional<ProgressBar> bar;
  with_progress.progress = [&](int64_t done, int64_t total, std::string_view what) {
    if (!bar) bar.emplace(console, "trying smaller graphs", total);
    bar->update(done);
    console.detail(fmt::format("trial {}: {}", done, what));
  };
  return minify(start, backend, with_progress);
}

/// What has to be made first: the folder or the outermost one around it that is missing; if it is there, a file
/// in it.
std::string first_missing(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (fs::is_directory(folder, ignored)) return (fs::path(folder) / "graph.txt").string();
  fs::path missing = folder;
  while (missing.has_parent_path() && missing.parent_path() != missing &&
         !fs::exists(missing.parent_path(), ignored))
    missing = missing.parent_path();
  if (fs::exists(missing, ignored))
    throw Error(ErrorCode::kIo, fmt::format("{}: is there, and no folder", missing.string()));
  return missing.string();
}

void minify_model(const MinifyRequest& options, const CommonOptions& common, Console& console) {
  const GraphCompiler backend = parse_option([&] { return lookup_compiler(options.backend); });
  std::vector<std::string> files;
  if (!options.inputs.empty()) files.push_back(options.inputs);
  require_writable({first_missing(options.folder)}, {options.model.path, files});
  const std::shared_ptr<GraphModule> module = open_model(options.model);
  const GraphCase start{module, collect_inputs(*module, InputOptions{.files = files}).front().values};
  const MinifiedCase found = search(options, start, backend, console);
  save_case(options.folder, found, options.backend);
  const std::string text = print_graph(found.smallest.module->graph());
  if (!found.complete)
    console.warn(fmt::format("stopped after {}: --max-trials may give a smaller graph",
                             counted(found.trials, "trial")));
  if (common.json) {
    const Json report = {{"folder", options.folder},
                         {"backend", options.backend},
                         {"failure", failure_json(found.failure)},
                         {"nodes_before", found.nodes_before},
                         {"nodes_after", found.nodes_after},
                         {"trials", found.trials},
                         {"complete", found.complete},
                         {"graph", text}};
    return console.result(report.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  }
  const std::string summary =
      fmt::format("{} of {} left after {}, in {}:", found.nodes_after, counted(found.nodes_before, "node"),
                  counted(found.trials, "trial"), options.folder);
  console.result(wrap_text(describe(found.failure), kColumns) + wrap_text(summary, kColumns) + "\n" +
                 narrow(text));
}

/// The exit code: 1 as long as the backend fails.
int check(const MinifyRequest& options, const CommonOptions& common, Console& console) {
  const GraphCompiler backend = parse_option([&] { return lookup_compiler(options.backend); });
  const SavedCase saved = load_case(options.check);
  const auto failure = find_failure(saved.graph_case, backend, options.minify);
  if (common.json) {
    Json report = {{"folder", options.check}, {"backend", options.backend}, {"fails", failure.has_value()}};
    if (failure) report["failure"] = failure_json(*failure);
    console.result(report.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  }
  if (failure) {
    Console::error(
        fmt::format("{}: backend {} fails: {}", options.check, options.backend, describe(*failure)));
    return kJobFailed;
  }
  if (!common.json)
    console.result(fmt::format("{}: backend {} does not fail\n", options.check, options.backend));
  return kDone;
}

}  // namespace

void add_minify(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<MinifyRequest>();
  CLI::App* command = app.add_subcommand("minify", kMinifyDescription);
  command->footer(kMinifyExamples);
  add_model_options(*command, options->model);
  CLI::Option* model = command->get_option("MODEL")->required(false);
  command->add_option("--backend", options->backend, "Which fails (see: halftone backends --all)")
      ->type_name("NAME")
      ->required();
  auto* inputs = command
                     ->add_option("--inputs", options->inputs,
                                  "Inputs by name (default: the sample inputs in the model's file)")
                     ->type_name("F.safetensors");
  auto* folder =
      command->add_option("-o,--output", options->folder, "Folder for the result (default: minified)")
          ->type_name("DIR");
  command
      ->add_option("--tolerance", options->minify.tolerance,
                   "Numbers x are right where |x - y| <= X * (1 + |y|) (default: 0.001), and\n"
                   "always within eight steps of their type: rounding is no failure")
      ->type_name("X")
      ->check(CLI::Validator(check_not_negative, "NONNEGATIVE"));
  command->add_option("--max-trials", options->minify.max_trials, "Graphs to try at most (default: 2000)")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000));
  command->add_option("--check", options->check, "Run the graph in this folder instead of a model")
      ->type_name("DIR")
      ->excludes(model)
      ->excludes(inputs)
      ->excludes(folder);
  add_common_options(*command, line.common);
  command->callback([options, model, &line] {
    if (options->check.empty() && model->count() == 0) throw CLI::RequiredError("MODEL, or --check DIR");
    line.job = [options, &line](Console& console) {
      if (options->check.empty()) return minify_model(*options, line.common, console);
      line.exit_code = check(*options, line.common, console);
    };
  });
}

}  // namespace halftone::cli
