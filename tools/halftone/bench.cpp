// halftone bench: runs a suite of models, says what each scheme gains and costs, and checks it against what
// was expected.
#include "halftone/bench/bench.h"

#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "bench_job.h"
#include "common/console.h"
#include "common/inputs.h"
#include "common/output_file.h"
#include "halftone/capture/capture.h"
#include "halftone/compile/compilers.h"
#include "halftone/graph/limits.h"

namespace halftone::cli {

namespace {

constexpr const char* kBenchDescription =
    "Run a suite of models, and compare, check and report what comes out\n\n"
    "Each row is a model with a scheme: its speed-up over eager (measured in turns), its accuracy, its\n"
    "memory, the time to compile it. Each runs in a process of its own: a crash, a time-out and a lack\n"
    "of memory are rows too. SUITE is \"builtin\", a folder of .pt2 files, or one .pt2 or .ht file.\n\n"
    "With --check the results are compared with a file of expectations; --update rewrites it. Exit\n"
    "codes: 0 as expected (without --check: every row ran and holds), 1 something got worse or is\n"
    "missing (a row failed), 3 the expectations are out of date, 2 wrong command line.";
constexpr const char* kBenchExamples = R"(Examples:
  halftone bench --list
  halftone bench --only 'mlp.*' --schemes noquant,autoquant --html report.html
  halftone bench -o all.csv --json all.json --html all.html
  halftone bench model.pt2 --batch-sizes 1,8 --schemes int8dynamic
  halftone bench model.pt2 --shapes input_ids:1x128,attention_mask:1x128 --schemes noquant --json
  halftone bench --training --backend halftone,aot_eager
  halftone bench --partition 1/4 -o part.csv --check expected.csv --tolerance 0.2
  halftone bench --preset 001 --set epilogue_fusion=true --print-options
  halftone bench --compare before.csv after.csv)";

struct BenchActions {
  BenchRequest request;
  std::string partition;
  std::string preset = "default";
  std::vector<std::string> settings;
  std::vector<std::string> compared;
  uint64_t memory_limit = 0;
  bool list = false;
  bool print_options = false;
};

CLI::Option* add_list(CLI::App& command, const char* name, std::vector<std::string>& list,
                      const std::string& what) {
  return command.add_option(name, list, what)->type_name("LIST")->delimiter(',')->allow_extra_args(false);
}

void add_what_runs(CLI::App& command, BenchActions& actions) {
  BenchRequest& request = actions.request;
  command.add_option("SUITE", request.suite, "The models (default: builtin)")->type_name("");
  command.add_flag("--performance", request.performance, "Only times (default: times and accuracy)");
  command.add_flag("--accuracy", request.accuracy, "Only accuracy");
  command.add_flag("--training", request.training, "Training steps (default: inference)");
  command.add_flag("--inference", request.inference, "Inference, also beside --training");
  add_list(command, "--schemes", request.schemes,
           fmt::format("{}\n(default: all of these), or those of halftone schemes",
                       fmt::join(default_bench_schemes(), ", ")));
  add_list(command, "--backend", request.backends, "halftone (default), or others of halftone backends");
  auto* batches =
      command.add_option("--batch-sizes", request.batch_sizes, "Commas between (default: the model's own)")
          ->type_name("LIST")
          ->delimiter(',')
          ->allow_extra_args(false)
          ->check(CLI::Validator(check_positive, "POSITIVE"));
  add_shape_options(command, request.shapes, request.seed)->excludes(batches);
  command.add_option("--only", request.selection.only, "Only models whose whole name matches")
      ->type_name("REGEX")
      ->check(CLI::Validator(check_pattern, ""));
  command.add_option("--exclude", request.selection.exclude, "Not these models")
      ->type_name("REGEX")
      ->check(CLI::Validator(check_pattern, ""));
  command.add_option("--partition", actions.partition, "Every N-th model, from the K-th on")
      ->type_name("K/N");
  command.add_flag("--list", actions.list, "List the models, and stop");
}

void add_how(CLI::App& command, BenchActions& actions) {
  BenchRequest& request = actions.request;
  command.add_option("--seconds", request.seconds, "For the times of one row")
      ->type_name("S")
      ->capture_default_str()
      ->check(CLI::Validator(check_positive, "POSITIVE"));
  command.add_option("--timeout", request.timeout, "Seconds for one row")
      ->type_name("S")
      ->capture_default_str()
      ->check(CLI::Validator(check_positive, "POSITIVE"));
  command.add_option("--memory-limit", actions.memory_limit, "What one row may allocate: 8GB, 500MB")
      ->type_name("SIZE")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/true));
  command.add_flag("--in-process", request.in_process,
                   "All rows in this process: a crash ends the run (for debugging)");
  command
      .add_option(
          "--preset", actions.preset,
          fmt::format("The compiler's settings: {} (docs/baseline.md)", fmt::join(baseline_presets(), ", ")))
      ->type_name("P")
      ->capture_default_str();
  command.add_option("--set", actions.settings, "One of them; may be repeated")
      ->type_name("OPTION=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_flag("--print-options", actions.print_options, "Print these settings, and stop");
  command.add_option("--cache", request.cache, "Folder of autoquant's measurements (default: none)")
      ->type_name("DIR");
  add_library_option(command, request.libraries);
  add_steps_option(command, request.max_steps);
}

/// Alone it prints, as in other commands. What could be meant as SUITE is never written over.
std::string check_json_file(const std::string& path) {
  std::error_code ignored;
  const bool suite = path == "builtin" || path.ends_with(".pt2") || path.ends_with(".ht") ||
                     std::filesystem::is_directory(path, ignored);
  return suite ? fmt::format("\"{}\" would be the file to write: name SUITE before --json", path) : "";
}

void add_json_option(CLI::App& command, std::string& file) {
  command
      .add_option("--json", file,
                  "Print the result as JSON, for programs; with a file, write it there\n"
                  "beside the table. Everything, layers and plans too")
      ->type_name("[F.json]")
      ->expected(0, 1)
      ->check(CLI::Validator(check_json_file, ""));
}

void add_what_comes_out(CLI::App& command, BenchActions& actions) {
  BenchRequest& request = actions.request;
  command.add_option("-o,--csv", request.csv, "Append the rows to this file, each as it is done")
      ->type_name("F.csv");
  add_json_option(command, request.json);
  command.add_option("--html", request.html, "A page with charts, for any browser, without network")
      ->type_name("R.html");
  add_force_option(command, request.force);
  auto* check = command.add_option("--check", request.check, "Compare with these expectations")
                    ->type_name("EXPECTED.csv");
  command.add_option("--tolerance", request.tolerance, "By which a speed-up may fall: 0.1 is a tenth")
      ->type_name("X")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0))
      ->needs(check);
  command.add_flag("--update", request.update, "Rewrite the expectations with what came out")->needs(check);
  command.add_option("--compare", actions.compared, "Compare two files, and run nothing")
      ->type_name("A.csv B.csv")
      ->expected(2);
}

int run_bench_actions(BenchActions& actions, const CommonOptions& common, Console& console) {
  BenchRequest& request = actions.request;
  if (!actions.compared.empty()) {
    if (common.json) throw UsageError("--json does not go with --compare");
    compare_bench_files(actions.compared.at(0), actions.compared.at(1), console);
    return kDone;
  }
  request.memory_limit = static_cast<int64_t>(actions.memory_limit);
  request.baseline = parse_option([&] { return setup_baseline(actions.preset); });
  for (const std::string& setting : actions.settings)
    parse_option([&] { set_baseline_option(request.baseline, setting); });
  if (actions.print_options) {
    if (common.json) throw UsageError("--json does not go with --print-options");
    console.result(describe_baseline(request.baseline));
    return kDone;
  }
  if (!actions.partition.empty()) parse_option([&] { set_partition(request.selection, actions.partition); });
  for (const std::string& scheme : request.schemes) parse_scheme_option([&] { check_bench_scheme(scheme); });
  for (const std::string& backend : request.backends) parse_option([&] { lookup_compiler(backend); });
  for (const std::string& library : request.libraries) load_operator_library(library);
  if (request.max_steps > 0) set_max_steps(request.max_steps);
  if (actions.list) {
    list_bench_models(request, common, console);
    return kDone;
  }
  return run_bench_request(request, common, console);
}

}  // namespace

void add_bench(CLI::App& app, CommandLine& line) {
  auto actions = std::make_shared<BenchActions>();
  CLI::App* command = app.add_subcommand("bench", kBenchDescription);
  command->footer(kBenchExamples);
  add_what_runs(*command, *actions);
  add_how(*command, *actions);
  add_what_comes_out(*command, *actions);
  add_effort_options(*command, line.common);
  command->callback([actions, command, &line] {
    line.common.json = command->count("--json") > 0 && actions->request.json.empty();
    line.job = [actions, &line](Console& console) {
      const c10::AutoGradMode with_gradients(true);  // for training; inference does without by itself
      line.exit_code = run_bench_actions(*actions, line.common, console);
    };
  });
}

void add_bench_child(CLI::App& app, CommandLine& line) {
  auto libraries = std::make_shared<std::vector<std::string>>();
  auto max_steps = std::make_shared<int64_t>(0);
  CLI::App* command = app.add_subcommand("bench-child", "Run one row of bench");
  command->group("");  // programs call it, not people
  add_library_option(*command, *libraries);
  add_steps_option(*command, *max_steps);
  command->prefix_command();  // the job is JSON, which must not be taken for a list
  command->callback([command, libraries, max_steps, &line] {
    line.job = [libraries, max_steps, arguments = command->remaining()](Console& console) {
      const c10::AutoGradMode with_gradients(true);
      for (const std::string& library : *libraries) load_operator_library(library);
      if (*max_steps > 0) set_max_steps(*max_steps);
      console.result(run_bench_child(arguments.empty() ? "" : arguments.front()) + "\n");
    };
  });
}

}  // namespace halftone::cli
