#include "autoquant_job.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/console.h"
#include "common/inputs.h"
#include "common/model_file.h"
#include "halftone/base/error.h"
#include "halftone/checkpoint/checkpoint.h"
#include "halftone/cli/message.h"
#include "halftone/cli/table.h"
#include "halftone/tune/modules.h"
#include "tune_files.h"

namespace halftone::cli {

namespace {

using AutoquantJson = nlohmann::ordered_json;

std::string cache_of(const AutoquantRequest& request) {
  if (request.no_cache) return {};
  return request.cache.empty() ? default_cache("autoquant") : request.cache;
}

AutoquantOptions autoquant_options(const AutoquantRequest& request) {
  AutoquantOptions options;
  options.schemes = request.schemes;
  options.min_cosine = request.min_cosine;
  options.min_layer_cosine = request.min_layer_cosine;
  options.time_limit = request.time_limit;
  options.error_on_unseen = !request.allow_unseen;
  options.final_comparison = !request.no_race;
  options.include = request.include;
  options.exclude = request.exclude;
  options.cache_dir = cache_of(request);
  options.use_cache = !request.no_cache;
  return options;
}

AutoquantPlan make_plan(const AutoquantRequest& request, const std::shared_ptr<GraphModule>& module,
                        Console& console) {
  AutoquantOptions options = autoquant_options(request);
  const Samples samples = collect_samples(*module, request.inputs);
  std::optional<ProgressBar> bar;
  options.progress = [&](int64_t done, int64_t total, std::string_view what) {
    if (!bar) bar.emplace(console, "autoquant", total);
    bar->update(done, what);
  };
  return plan_autoquant(module, samples, options);
}

/// A file is made of model and plan alone, so that the plan replayed gives the same bytes whatever inputs it
/// was measured with: the samples in it are the model's own.
QuantizeReport write_checkpoint(const AutoquantRequest& request, const std::shared_ptr<GraphModule>& module,
                                const AutoquantPlan& plan) {
  const QuantizeReport report = apply_plan(*module, plan);
  std::vector<Sample> samples;
  if (!module->sample_inputs.empty()) samples = collect_samples(*module, {}).calls;
  Backend backend(layerwise_backend_recipe(plan.overrides()));
  backend.build(module, {}, samples);
  save(backend, request.output.path, {.sample_data = true});
  return report;
}

/// A replay measures nothing: what the run that made the plan found and how long it took is its story.
AutoquantPlan replayed(AutoquantPlan plan, const std::string& path) {
  plan.notes = {fmt::format("Replayed from {}{}: nothing is measured.", path,
                            plan.measured_at.empty() ? "" : ", measured at " + plan.measured_at)};
  plan.runs.clear();
  plan.seconds = 0;
  return plan;
}

void print_plan(const AutoquantRequest& request, const AutoquantPlan& plan,
                const std::optional<QuantizeReport>& applied, const CommonOptions& common, Console& console) {
  const std::string& output = request.output.path;
  const int64_t bytes = applied ? file_bytes(output) : 0;
  if (common.json) {
    AutoquantJson json = AutoquantJson::parse(plan.to_json());
    if (applied) {
      json.update({{"output", output},
                   {"output_bytes", bytes},
                   {"bytes_before", applied->bytes_before},
                   {"bytes_after", applied->bytes_after}});
    }
    return console.result(json.dump(-1, ' ', false, AutoquantJson::error_handler_t::replace) + "\n");
  }
  console.result(request.plan.empty() ? plan.to_text() : replayed(plan, request.plan).to_text());
  if (!applied) return;
  std::string last = fmt::format("weights {} instead of {}; written: {} ({}); to run it: halftone run {}",
                                 describe_bytes(applied->bytes_after), describe_bytes(applied->bytes_before),
                                 output, describe_bytes(bytes), output);
  if (!plan.quantizes()) last = fmt::format("no layer is quantized: fp32 is kept; written: {}", output);
  console.result(wrap_text(last, kColumns));
}

}  // namespace

void run_autoquant(const AutoquantRequest& request, const CommonOptions& common, Console& console) {
  if (request.output.path.empty() && request.plan_out.empty())
    throw UsageError("-o OUT.ht is missing (or --plan-out P.json)");
  FilesRead read{request.model.path, request.inputs.files};
  read.others.push_back(request.plan);
  for (const OutputOptions& output : {request.output, {request.plan_out, request.output.force}})
    require_writable(output, read);
  for (const std::string& scheme : request.schemes)
    parse_scheme_option([&] { return autoquant_scheme(scheme); });
  // Before the model: a mistake in the plan is told at once.
  std::optional<AutoquantPlan> plan;
  if (!request.plan.empty()) plan = read_autoquant_plan(request.plan);
  const std::shared_ptr<GraphModule> module = open_model(request.model);
  if (!plan) plan = make_plan(request, module, console);
  if (!request.plan_out.empty()) {
    write_autoquant_plan(request.plan_out, *plan);
    console.info(fmt::format("wrote {}", request.plan_out));
  }
  std::optional<QuantizeReport> applied;
  if (!request.output.path.empty()) applied = write_checkpoint(request, module, *plan);
  print_plan(request, *plan, applied, common, console);
}

void show_autoquant_cache(const AutoquantRequest& request, const CommonOptions& common, Console& console) {
  const std::string folder = cache_of(request);
  const std::vector<AutoquantCacheEntry> entries = autoquant_cache(folder);
  if (common.json) {
    AutoquantJson json = {{"cache", folder}, {"entries", AutoquantJson::array()}};
    for (const AutoquantCacheEntry& entry : entries) {
      json["entries"].push_back({{"problem", entry.problem},
                                 {"scheme", entry.scheme},
                                 {"machine", entry.machine},
                                 {"milliseconds", entry.milliseconds}});
    }
    return console.result(json.dump(-1, ' ', false, AutoquantJson::error_handler_t::replace) + "\n");
  }
  std::map<std::string, std::vector<Row>> by_machine;
  for (const AutoquantCacheEntry& entry : entries)
    by_machine[entry.machine].push_back(
        {entry.problem, entry.scheme, fmt::format("{:.4f}", entry.milliseconds)});
  for (const auto& [machine, rows] : by_machine) {
    console.result(wrap_text(machine, kColumns));
    console.result(
        render_table({{"what was timed", Align::kLeft, Cut::kMiddle, 30}, {"scheme"}, {"ms", Align::kRight}},
                     rows, kColumns) +
        "\n");
  }
  if (!entries.empty())
    console.result(wrap_text(
        "\"beside N weights\": so many others the model reads between two calls of these layers, rounded up "
        "to a power of two; they decide what the caches hold. \"#…\": a checksum of the graph.",
        kColumns));
  console.result(
      wrap_text(fmt::format("{} in {}", counted(entries.size(), "measurement"), folder), kColumns));
}

void clear_autoquant_cache(const AutoquantRequest& request, const CommonOptions& common, Console& console) {
  const std::string folder = cache_of(request);
  const size_t removed = halftone::clear_autoquant_cache(folder);
  if (common.json)
    return console.result(AutoquantJson{{"cache", folder}, {"removed", removed}}.dump() + "\n");
  console.result(
      wrap_text(fmt::format("{} removed from {}", counted(removed, "measurement"), folder), kColumns));
}

}  // namespace halftone::cli
