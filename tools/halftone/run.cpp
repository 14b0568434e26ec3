// halftone run: calls a model on tensors of files, or on its sample inputs; writes, summarizes and times the
// result.
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "common/command_line.h"
#include "common/console.h"
#include "common/inputs.h"
#include "common/model_file.h"
#include "common/output_file.h"
#include "common/outputs.h"
#include "common/profiling.h"
#include "common/runner.h"
#include "common/timing.h"
#include "halftone/base/error.h"
#include "halftone/cli/message.h"
#include "halftone/cli/table.h"
#include "halftone/graph/graph_module.h"

namespace halftone::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kRunDescription =
    "Run a model on its sample inputs, or on tensors from files\n\n"
    "Inputs go by the model's own input names (see: halftone inspect). Several --inputs are calls in\n"
    "this order to one session: what the model keeps, such as a key-value cache, carries over.\n"
    "With --outputs, each call's results are written as output_0, output_1, … in flattened order;\n"
    "the metadata key \"structure\" tells the place of each in the nested result. None is left out,\n"
    "numbers are 0-d tensors, inputs that the model wrote to are added as mutated_input_NAME.\n"
    "Without --outputs, a summary of the results is printed.";
constexpr const char* kRunExamples = R"(Examples:
  halftone run model.pt2
  halftone run model.pt2 --inputs in.safetensors --outputs out.safetensors
  halftone run model.pt2 --shapes input_ids:1x128,attention_mask:1x128 --repeat 50
  halftone run model.pt2 --inputs in.npz --outputs out.npz
  halftone run decoder.pt2 --inputs token0.safetensors --inputs token1.safetensors
  halftone run model.pt2 --repeat 100
  halftone run model.ht --profile --trace trace.json
  halftone run tuned.ht --repeat 100
  halftone run model.pt2 --repeat 100 --threads 2 --json)";

struct RunOptions {
  RunnerOptions runner;
  InputOptions inputs;
  std::vector<std::string> outputs;
  bool force = false;  ///< write outputs over inputs
  int repeat = 0;
  double duration = 0;  ///< seconds; 0: not by time
  bool timed() const { return repeat > 0 || duration > 0; }
  ProfileRequest profile;
  bool deterministic = false;
};

void check_files(const RunOptions& options) {
  const size_t calls = options.inputs.calls();
  if (!options.outputs.empty() && options.outputs.size() != calls) {
    throw CLI::ValidationError("--outputs",
                               fmt::format("{} given for {} call{}: there must be one for each --inputs",
                                           options.outputs.size(), calls, calls == 1 ? "" : "s"));
  }
  if (std::set(options.outputs.begin(), options.outputs.end()).size() != options.outputs.size()) {
    throw CLI::ValidationError("--outputs", "two calls would write the same file");
  }
}

/// The option that only compiled models have; "" if none is given.
std::string compiled_only(const RunOptions& options) {
  if (!options.runner.disabled_passes.empty()) return "--disable-pass";
  if (options.profile.tables) return "--profile";
  if (!options.profile.trace_path.empty()) return "--trace";
  return options.deterministic ? "--deterministic" : "";
}

/// It must not be ignored in silence.
void check_backend_options(const RunOptions& options) {
  const std::string& backend = options.runner.backend;
  const std::string option = compiled_only(options);
  if (!option.empty() && !backend.empty() && backend != "halftone")
    throw CLI::ValidationError(option, "needs --backend halftone");
}

void require_compiled(const RunOptions& options, const Runner& runner) {
  const std::string option = compiled_only(options);
  if (!option.empty() && !runner.compiled)
    throw UsageError(fmt::format("{} needs --backend halftone: {} runs as {}", option,
                                 options.runner.model.path, runner.backend));
}

/// All calls in order, from a reset state; milliseconds in the model alone.
double time_calls(Session& session, const std::vector<InputSet>& calls) {
  using Clock = std::chrono::steady_clock;
  session.reset();
  std::chrono::duration<double, std::milli> spent{0};
  for (const InputSet& call : calls) {
    std::vector<c10::IValue> inputs = copy_for_call(session.module(), call);
    const auto start = Clock::now();
    session.run(std::move(inputs));
    spent += Clock::now() - start;
  }
  return spent.count();
}

/// The results must be written or summarized before the next call: they may share memory with the session's
/// state.
Json run_calls(Session& session, const std::vector<InputSet>& calls, const RunOptions& options, bool json,
               Console& console) {
  Json report = Json::array();
  for (size_t i = 0; i < calls.size(); ++i) {
    const std::vector<c10::IValue> inputs = copy_for_call(session.module(), calls[i]);
    const std::vector<Output> outputs = name_outputs(session.module(), inputs, session.run(inputs));
    Json entry = {{"inputs", calls[i].origin}};
    if (!options.outputs.empty()) {
      save_outputs(options.outputs[i], outputs);
      console.info(fmt::format("wrote {}", options.outputs[i]));
      entry["outputs_file"] = options.outputs[i];
    }
    if (json) {
      entry["outputs"] = outputs_json(outputs);
      report.push_back(std::move(entry));
    } else if (options.outputs.empty()) {
      if (calls.size() > 1) console.result(fmt::format("{}{}\n", i == 0 ? "" : "\n", calls[i].origin));
      console.result(outputs_table(outputs));
    }
  }
  return report;
}

void add_timing(Session& session, const std::vector<InputSet>& calls, const RunOptions& options, bool json,
                Console& console, Json& report) {
  const RepeatFor repeat = {std::max(options.repeat, 1), options.duration};
  const Timing timing =
      time_repeatedly(console, "timing", repeat, [&] { return time_calls(session, calls); });
  const double per_second = 1e3 * static_cast<double>(calls.size()) / timing.mean_ms;
  if (!json) {
    const std::string of_calls =
        calls.size() == 1 ? "of one call" : fmt::format("of all {} calls together", calls.size());
    console.result(wrap_text(
        fmt::format("{} {}{}, backend {}: {}; {:.1f} calls per second", counted(timing.runs, "repetition"),
                    of_calls, !session.state_names().empty() ? ", each from a reset state" : "",
                    report.at("backend").get<std::string>(), describe_timing(timing), per_second),
        kColumns));
  }
  report["repeat"] = timing.runs;
  report["calls_per_repetition"] = calls.size();
  report["median_ms"] = timing.median_ms;
  report["p10_ms"] = timing.p10_ms;
  report["p90_ms"] = timing.p90_ms;
  report["p99_ms"] = timing.p99_ms;
  report["mean_ms"] = timing.mean_ms;
  report["calls_per_second"] = per_second;
}

/// Native steps give the same bytes for every number of threads; ATen promises that for none of its own.
void say_what_may_differ(const CompiledGraph& compiled, const std::vector<c10::IValue>& inputs,
                         Console& console, Json& report) {
  const PlanReport plan = compiled.report(inputs);
  std::vector<std::string> lines = plan.left_to_aten;
  if (!plan.interpreted.empty()) lines = {"the whole graph: " + plan.interpreted};
  report["may_differ"] = lines;
  if (lines.empty()) console.info("deterministic: the same bytes for every number of threads");
  // A line for each operator and reason: a deep model has the same in every layer.
  std::map<std::string, std::pair<std::string, int>> alike;
  for (const std::string& line : lines) {
    const size_t layer = line.find(" in layer \""), end = line.find("\": ", layer);
    const bool has_layer = layer != std::string::npos && end != std::string::npos;
    const std::string key = has_layer ? line.substr(0, layer) + line.substr(end + 1) : line;
    ++alike.try_emplace(key, line, 0).first->second.second;
  }
  for (const auto& [key, first] : alike)
    console.warn(fmt::format("may differ between numbers of threads: {}{}", first.first,
                             first.second > 1 ? fmt::format(" (and {} more alike)", first.second - 1) : ""));
}

void run_model(const RunOptions& options, const CommonOptions& common, Console& console) {
  const FilesRead read{options.runner.model.path, options.inputs.files};
  for (const std::string& path : options.outputs) require_writable({path, options.force, true}, read);
  require_writable({options.profile.trace_path, options.force}, read);
  check_passes(options.runner.disabled_passes);
  Runner runner = make_runner(options.runner, console);
  require_compiled(options, runner);
  Session& session = runner.session;
  const GraphModule& module = session.module();
  for (const std::string& note : module.notes) console.detail(note);
  const std::vector<InputSet> calls = collect_inputs(module, options.inputs);
  const std::shared_ptr<const CompiledGraph>& compiled = runner.compiled;
  Json results = run_calls(session, calls, options, common.json, console);
  if (compiled) say_what_is_left(*compiled, copy_for_call(module, calls.front()), console);
  Json report = {
      {"model", options.runner.model.path}, {"backend", runner.backend}, {"threads", at::get_num_threads()}};
  if (options.deterministic)
    say_what_may_differ(*compiled, copy_for_call(module, calls.front()), console, report);
  if (!common.json && options.outputs.empty()) console.result(fmt::format("backend: {}\n", runner.backend));
  if (options.timed()) add_timing(session, calls, options, common.json, console, report);
  if (options.profile.wanted()) {
    session.reset();
    report["profile"] = profile_model(session, *compiled, copy_for_call(module, calls.front()),
                                      options.profile, common.json, console);
    if (!common.json) report.erase("profile");
  }
  if (common.json) report["calls"] = std::move(results);
  if (common.json || options.timed()) {
    console.result(report.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  }
}

}  // namespace

void add_run(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", kRunDescription);
  command->footer(kRunExamples);
  add_model_options(*command, options->runner.model);
  add_input_options(*command, options->inputs,
                    "Inputs of a call: .safetensors, .npz, .npy; may be repeated\n"
                    "(default: the model's sample inputs)");
  command
      ->add_option("--outputs", options->outputs,
                   "Where a call's results go: one for each --inputs; .safetensors, .npz,\n"
                   ".npy (one result)")
      ->type_name("FILE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_force_option(*command, options->force);
  add_backend_option(*command, options->runner.backend);
  command
      ->add_option("--disable-pass", options->runner.disabled_passes,
                   "Compile without this pass (--backend halftone); may be repeated")
      ->type_name("NAME")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      ->add_option("--repeat", options->repeat,
                   "Warm up, then time N repetitions of all calls; each starts from\n"
                   "a reset state. Prints p50, p10, p90, p99, mean, calls per second;\n"
                   "the last line is JSON")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000));
  command->add_option("--duration", options->duration, "The same for so many seconds, at least once")
      ->type_name("SECONDS")
      ->check(CLI::Validator(check_positive, "POSITIVE"));
  command->add_flag("--profile", options->profile.tables,
                    "Then time each step of the first call: tables by layer and by step,\n"
                    "bytes moved, share of what this machine could do (--backend halftone)");
  command
      ->add_option("--trace", options->profile.trace_path,
                   "The same for chrome://tracing and Perfetto (--backend halftone)")
      ->type_name("F.json");
  command->add_flag("--deterministic", options->deterministic,
                    "Say which operators may give other bytes for another number of threads;\n"
                    "all others never do (--backend halftone)");
  add_common_options(*command, line.common);
  command->callback([options, &line] {
    check_files(*options);
    check_backend_options(*options);
    line.job = [options, &line](Console& console) { run_model(*options, line.common, console); };
  });
}

}  // namespace halftone::cli
