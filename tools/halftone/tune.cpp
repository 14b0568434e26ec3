// halftone tune: tries ways to run a model, takes the best that is right, and writes it as a file to deploy.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/command_line.h"
#include "common/console.h"
#include "common/inputs.h"
#include "common/model_file.h"
#include "common/output_file.h"
#include "common/scheme_options.h"
#include "halftone/base/error.h"
#include "halftone/checkpoint/checkpoint.h"
#include "halftone/cli/message.h"
#include "halftone/cli/table.h"
#include "halftone/tune/modules.h"
#include "tune_files.h"
#include "tune_text.h"

namespace halftone::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kTuneDescription =
    "Find the fastest way to run a model that still gives the right answers\n\n"
    "Builds the model with each backend and scheme, checks it against eager on held-out inputs, and\n"
    "measures all of them in turns. A candidate counts only where it is faster than eager and than\n"
    "Halftone's fp32. The one that the strategy takes is written with the decision and can be run\n"
    "anywhere: halftone run OUT.ht, or load() in C++. Without -o the table is all that comes out.\n"
    "Measurements are kept in a cache, so that tuning again is instant on the same machine. Where\n"
    "other programs disturb them, nothing is said, kept or written: exit code 1, and likewise where\n"
    "nothing meets a budget.\n\n"
    "Strategies: throughput (the default; most per second), latency (shortest call), first (the first\n"
    "valid candidate), one (--candidate and no other), latency-budget (most per second within\n"
    "--budget-ms), accuracy (fastest with --min-cosine), size (smallest within --budget-ms).";
constexpr const char* kTuneExamples = R"(Examples:
  halftone tune model.pt2 --dry-run
  halftone tune model.pt2
  halftone tune model.pt2 -o tuned.ht
  halftone tune model.pt2 --inputs short.safetensors --inputs long.safetensors -o tuned.ht
  halftone tune model.pt2 --strategy latency-budget --budget-ms 20 -o tuned.ht
  halftone tune model.pt2 --strategy accuracy --min-cosine 0.999 -o tuned.ht --report tuned.json
  halftone tune model.pt2 --schemes int8dq,int4wo --time-limit 20 --isolate -o tuned.ht
  halftone tune --show-cache)";

struct TuneRequest {
  ModelOptions model;
  std::string strategy = "throughput";
  std::vector<std::string> backends;
  std::vector<std::string> schemes;
  InputOptions inputs;
  std::string candidate;
  std::optional<double> budget_ms;
  std::optional<double> min_cosine;
  double time_limit = TuneOptions{}.time_limit;
  bool isolate = false;
  bool dry_run = false;
  bool by_submodule = false;
  std::string cache;
  bool no_cache = false;
  bool show_cache = false;
  bool clear_cache = false;
  OutputOptions output;
  std::string report;
};

std::string cache_of(const TuneRequest& options) {
  if (options.no_cache) return {};
  return options.cache.empty() ? default_cache("tune") : options.cache;
}

/// A metric is a function: there is none on a command line.
std::vector<std::string> known_strategies() {
  std::vector<std::string> names = strategy_names();
  std::erase(names, "metric");
  return names;
}

std::string check_strategy(const std::string& name) {
  const std::vector<std::string> known = known_strategies();
  if (std::find(known.begin(), known.end(), name) != known.end()) return {};
  return fmt::format("unknown strategy '{}'; known: {}", name, fmt::join(known, ", "));
}

/// A number that the strategy does not look at would be ignored in silence.
void check_numbers(const TuneRequest& options) {
  const auto needs = [&](const char* option, bool given, std::initializer_list<std::string_view> strategies) {
    const bool used = std::find(strategies.begin(), strategies.end(), options.strategy) != strategies.end();
    if (given == used) return;
    throw CLI::ValidationError(
        option, used ? fmt::format("is missing: --strategy {} needs it", options.strategy)
                     : fmt::format("goes only with --strategy {}", fmt::join(strategies, " or ")));
  };
  needs("--budget-ms", options.budget_ms.has_value(), {"latency-budget", "size"});
  needs("--candidate", !options.candidate.empty(), {"one"});
  if (options.strategy == "accuracy" && !options.min_cosine) {
    throw CLI::ValidationError("--min-cosine", "is missing: --strategy accuracy needs it");
  }
  if (options.by_submodule && !options.backends.empty()) {
    throw CLI::ValidationError("--by-submodule", "tries schemes only, no --backends");
  }
}

/// What a child needs to open the model as this process did.
std::vector<std::string> trial_command(const ModelOptions& model) {
  std::vector<std::string> command = {own_program(), "trial"};
  for (const std::string& library : model.libraries)
    command.insert(command.end(), {"--load-library", library});
  if (model.max_steps > 0) command.insert(command.end(), {"--max-steps", std::to_string(model.max_steps)});
  return command;
}

TuneOptions settings_of(const TuneRequest& options) {
  TuneOptions settings;
  if (!options.by_submodule) settings.candidates = select_candidates(options.backends, options.schemes);
  if (!options.candidate.empty()) {
    std::vector<std::string> names;
    for (const TuneCandidate& each : settings.candidates) names.push_back(each.name);
    require_known("--candidate", options.candidate, names);
  }
  if (options.min_cosine) settings.min_cosine = *options.min_cosine;
  settings.time_limit = options.time_limit;
  settings.cache_dir = cache_of(options);
  if (options.isolate) settings.isolate = TuneIsolation{.command = trial_command(options.model)};
  return settings;
}

SubmoduleTuneOptions parts_of(const TuneRequest& options) {
  SubmoduleTuneOptions parts;
  if (!options.by_submodule) return parts;
  for (const std::string& scheme : options.schemes) parts.configs.push_back(parse_scheme(scheme));
  return parts;
}

/// What was chosen, and for --by-submodule the scheme of each part.
struct Outcome {
  TuneResult result;
  LayerwiseConfig parts;
};

Outcome tune_model(const TuneRequest& options, const ModelSource& model, const Samples& samples,
                   const Strategy& strategy, TuneOptions settings, const SubmoduleTuneOptions& parts_options,
                   Console& console) {
  std::optional<ProgressBar> bar;
  settings.progress = [&](int64_t done, int64_t total, std::string_view what) {
    if (!bar) bar.emplace(console, "tuning", total);
    bar->update(done, what);
  };
  if (!options.by_submodule) return {halftone::tune(model, samples, strategy, settings), {}};
  SubmoduleTuneResult parts = tune_submodules(model, samples, strategy, settings, parts_options);
  return {std::move(parts.result), std::move(parts.chosen)};
}

void print(const Outcome& outcome, const TuneRequest& options, const CommonOptions& common,
           Console& console) {
  const TuneReport& report = outcome.result.report;
  const std::string& output = options.output.path;
  const int64_t bytes = output.empty() ? 0 : file_bytes(output);
  if (common.json) {
    Json json = Json::parse(report.to_json());
    if (options.by_submodule) json["parts"] = parts_json(outcome.parts);
    if (!output.empty()) json.update({{"output", output}, {"output_bytes", bytes}});
    return console.result(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  }
  if (options.by_submodule) console.result(parts_text(outcome.parts) + "\n");
  std::string last = gain_text(report);
  if (!output.empty()) {
    const InputOptions& given = options.inputs;
    std::string inputs;
    if (!given.files.empty()) inputs = " --inputs " + given.files.front();
    if (!given.shapes.empty()) inputs = " --shapes " + given.shapes.front();
    last += fmt::format("; written: {} ({}); to run it: halftone run {}{}", output, describe_bytes(bytes),
                        output, inputs);
  }
  console.result(report.to_text() + wrap_text(last, kColumns));
}

/// A file that breaks its budget is not what was asked for.
bool breaks_budget(const TuneRequest& options, const TuneReport& report) {
  return options.budget_ms.has_value() && !report.met;
}

int tune(const TuneRequest& options, const CommonOptions& common, Console& console) {
  for (const OutputOptions& output : {options.output, {options.report, options.output.force}})
    require_writable(output, {options.model.path, options.inputs.files});
  const Strategy strategy = strategy_by_name(
      options.strategy,
      {.budget_ms = options.budget_ms, .minimum = options.min_cosine, .candidate = options.candidate});
  const TuneOptions settings = parse_scheme_option([&] { return settings_of(options); });
  const SubmoduleTuneOptions parts = parts_of(options);
  const std::shared_ptr<GraphModule> module = open_model(options.model);
  const Samples samples = collect_samples(*module, options.inputs);
  if (options.dry_run) {
    const TuneDryRun plan = dry_run(module, samples, strategy, settings);
    console.result(common.json ? plan.to_json() + "\n" : plan.to_text());
    return kDone;
  }
  const Outcome outcome = tune_model(options, module, samples, strategy, settings, parts, console);
  if (breaks_budget(options, outcome.result.report)) {
    TuneRequest nothing = options;
    nothing.output.path.clear();
    print(outcome, nothing, common, console);
    console.warn(fmt::format("nothing meets the budget of {} ms: nothing is written", *options.budget_ms));
    return kJobFailed;
  }
  // The file's own sample inputs may go on into the next one; calls that the user brought are only shapes.
  if (!options.output.path.empty()) {
    save(outcome.result.backend, options.output.path, {.sample_data = options.inputs.files.empty()});
  }
  if (!options.report.empty()) {
    write_text(options.report, outcome.result.report.to_json() + "\n");
    console.info(fmt::format("wrote {}", options.report));
  }
  print(outcome, options, common, console);
  return kDone;
}

void show_cache(const TuneRequest& options, const CommonOptions& common, Console& console) {
  const std::string folder = cache_of(options);
  const std::vector<TuneCacheEntry> entries = tune_cache(folder);
  if (common.json) {
    Json json = {{"cache", folder}, {"entries", Json::array()}};
    for (const TuneCacheEntry& entry : entries) {
      json["entries"].push_back({{"file", entry.file},
                                 {"measured_at", entry.measured_at},
                                 {"model", entry.model},
                                 {"shapes", entry.shapes},
                                 {"machine", entry.machine},
                                 {"candidates", entry.candidates},
                                 {"rounds", entry.rounds},
                                 {"disturbed_rounds", entry.disturbed}});
    }
    return console.result(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  }
  std::vector<Row> rows;
  for (const TuneCacheEntry& entry : entries)
    rows.push_back({entry.measured_at, entry.model, entry.shapes, fmt::to_string(entry.candidates),
                    fmt::to_string(entry.rounds), fmt::to_string(entry.disturbed)});
  if (!rows.empty())
    console.result(render_table({{"measured"},
                                 {"model", Align::kLeft, Cut::kMiddle, 16},
                                 {"shapes", Align::kLeft, Cut::kMiddle, 10},
                                 {"candidates", Align::kRight},
                                 {"rounds", Align::kRight},
                                 {"disturbed", Align::kRight}},
                                rows, kColumns) +
                   "\n");
  console.result(wrap_text(fmt::format("{} in {}", counted(entries.size(), "tuning"), folder), kColumns));
}

void clear_cache(const TuneRequest& options, const CommonOptions& common, Console& console) {
  const std::string folder = cache_of(options);
  const size_t removed = clear_tune_cache(folder);
  if (common.json) return console.result(Json{{"cache", folder}, {"removed", removed}}.dump() + "\n");
  console.result(wrap_text(fmt::format("{} removed from {}", counted(removed, "tuning"), folder), kColumns));
}

void add_choices(CLI::App& command, TuneRequest& options) {
  command.add_option("--strategy", options.strategy, "Which of the valid candidates is taken; see above")
      ->type_name("S")
      ->capture_default_str()
      ->check(CLI::Validator(check_strategy, ""));
  // One argument each: the model's file may come after it.
  command
      .add_option("--backends", options.backends,
                  "Only these: eager, ts, halftone, quant, autoquant; commas between\n"
                  "(default: all)")
      ->type_name("LIST")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      .add_option("--schemes", options.schemes,
                  "Of the candidates that quantize only these (see: halftone schemes)")
      ->type_name("LIST")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--candidate", options.candidate, "The only one to try, for --strategy one")
      ->type_name("NAME");
  command.add_option("--budget-ms", options.budget_ms, "Longest call, for latency-budget and size")
      ->type_name("N")
      ->check(CLI::Validator(check_positive, "POSITIVE"));
  command
      .add_option("--min-cosine", options.min_cosine,
                  fmt::format("Least cosine to eager's outputs; others are dropped (default: {:g})",
                              TuneOptions{}.min_cosine))
      ->type_name("X")
      ->check(CLI::Range(-1.0, 1.0));
}

void add_effort(CLI::App& command, TuneRequest& options) {
  add_input_options(command, options.inputs,
                    "A call to tune for; may be repeated, with other shapes too (default: the\n"
                    "model's sample inputs). The last fifth is held out for checking");
  command.add_option("--time-limit", options.time_limit, "Seconds for everything")
      ->type_name("S")
      ->capture_default_str()
      ->check(CLI::Validator(check_positive, "POSITIVE"));
  command.add_flag("--isolate", options.isolate,
                   "Try each candidate in a process of its own first: one that crashes is\n"
                   "a row of the table");
  auto* dry_run = command.add_flag("--dry-run", options.dry_run, "Only print what would be tried");
  command
      .add_flag("--by-submodule", options.by_submodule,
                "A scheme for each part of the model that is worth it, not one for all")
      ->excludes(dry_run);
  auto* cache = command
                    .add_option("--cache", options.cache,
                                "Folder of measurements (default: halftone/tune in $XDG_CACHE_HOME,\n"
                                "or else in ~/.cache)")
                    ->type_name("DIR");
  command.add_flag("--no-cache", options.no_cache, "Measure again, and keep nothing")->excludes(cache);
  auto* clear = command.add_flag("--clear-cache", options.clear_cache, "Forget all measurements, and stop");
  command.add_flag("--show-cache", options.show_cache, "List the measurements, and stop")->excludes(clear);
}

}  // namespace

void add_tune(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<TuneRequest>();
  CLI::App* command = app.add_subcommand("tune", kTuneDescription);
  command->footer(kTuneExamples);
  add_model_options(*command, options->model);
  command->get_option("MODEL")->required(false);  // the cache has no model
  add_choices(*command, *options);
  add_effort(*command, *options);
  add_output_options(*command, options->output, "The checkpoint to write");
  command->add_option("--report", options->report, "Every candidate, measured and judged, as JSON")
      ->type_name("R.json");
  add_common_options(*command, line.common);
  command->callback([options, &line] {
    check_numbers(*options);
    if (options->model.path.empty() && !options->show_cache && !options->clear_cache)
      throw CLI::RequiredError("MODEL");
    line.job = [options, &line](Console& console) {
      if (options->clear_cache) return clear_cache(*options, line.common, console);
      if (options->show_cache) return show_cache(*options, line.common, console);
      line.exit_code = tune(*options, line.common, console);
    };
  });
}

}  // namespace halftone::cli
