#include "tune/setup.h"

#include <ATen/core/grad_mode.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "backend/lifecycle/backend_access.h"
#include "base/errors.h"
#include "halftone/cli/message.h"
#include "halftone/cli/table.h"
#include "tune/accuracy.h"
#include "tune/candidates.h"
#include "tune/report/fingerprint.h"
#include "tune/report/report_json.h"
#include "tune/report/report_text.h"

namespace halftone {
namespace {

// A graph does in fp32 what the module does: the operators are the same.
constexpr double kCaptureCosine = 0.9999;

/// Building compared nothing: it may call the module only once. A module that keeps no state can be asked
/// again.
void compare_with_module(const ModelSource& model, const Backend& eager,
                         const std::shared_ptr<const GraphModule>& graph,
                         const std::vector<Sample>& samples) {
  if (!Session(graph).state_names().empty() || !graph->mutated_input_names().empty()) return;
  const at::NoGradGuard no_grad;
  AccuracyCount count;
  for (const Sample& sample : samples)
    count.add(model.forward(sample.args), eager.infer(sample.args, sample.kwargs), {});
  const Accuracy accuracy = count.result();
  if (accuracy.nans > 0 || !(accuracy.min_cosine >= kCaptureCosine)) {
    fail(ErrorCode::kUnsupported,
         "{}: the captured graph does not do what the module does (cosine {:.5f}): it branches on data, "
         "draws random "
         "numbers, or keeps something that is no tensor",
         graph->name, accuracy.min_cosine);
  }
}

}  // namespace

std::vector<std::string> TuningSetup::candidate_keys() const {
  std::vector<std::string> keys;
  for (const TuneCandidate& candidate : candidates)
    keys.push_back(candidate.name + " " + Backend(candidate.recipe).key());
  return keys;
}

TuningSetup set_up(const ModelSource& model, const Samples& samples, const Strategy& strategy,
                   const TuneOptions& options) {
  if (!model.graph && !model.module) fail(ErrorCode::kInvalidArgument, "tuning: there is no model");
  if (!strategy.choose)
    fail(ErrorCode::kInvalidArgument, "strategy \"{}\" has no function that chooses", strategy.name);
  if (!(options.time_limit > 0)) fail(ErrorCode::kInvalidArgument, "tuning: the time limit must be above 0");
  TuningSetup setup;
  setup.spec = options.spec;
  // A loaded graph is named after its file. Reports go into files, which name no folder of this machine.
  if (model.graph && setup.spec.name.empty())
    setup.spec.name = std::filesystem::path(model.graph->name).filename().string();
  setup.layout = lay_out(samples, model.graph.get(), options.spec, options.seed);
  if (!model.graph) setup.spec.dynamic = setup.layout.dynamic;
  setup.candidates = candidates_to_try(options.candidates, strategy);
  setup.min_cosine = strategy.min_cosine.value_or(options.min_cosine);
  return setup;
}

Backend captured_backend(const ModelSource& model, const TuningSetup& setup, c10::Device device) {
  Backend eager(eager_backend_recipe());
  eager.build(model, setup.spec, setup.layout.build, device);
  if (model.module)
    compare_with_module(model, eager, BackendAccess::content(eager).original, setup.layout.validation);
  eager.deactivate();
  return eager;
}

std::shared_ptr<const GraphModule> capture_model(const ModelSource& model, const TuningSetup& setup,
                                                 c10::Device device) {
  return BackendAccess::content(captured_backend(model, setup, device)).original;
}

CacheKey cache_key(const TuningSetup& setup, std::string model_hash, const Strategy& strategy,
                   const TuneOptions& options) {
  CacheKey key;
  key.model_hash = std::move(model_hash);
  key.shapes = setup.layout.shapes;
  key.candidates = setup.candidate_keys();
  key.min_cosine = setup.min_cosine;
  key.metric = options.metric_name;
  key.stop_at_first = strategy.stop_at_first;
  key.beat_fp32 = strategy.beat_fp32;
  return key;
}

TuneDryRun dry_run(const ModelSource& model, const Samples& samples, const Strategy& strategy,
                   const TuneOptions& options) {
  const TuningSetup setup = set_up(model, samples, strategy, options);
  TuneDryRun plan;
  plan.model = setup.spec.name;
  plan.strategy = strategy.name;
  for (size_t i = 0; i < setup.candidates.size(); ++i)
    plan.candidates.push_back(
        {setup.candidates[i].name, Backend(setup.candidates[i].recipe).describe(), i < 2});
  plan.shapes = setup.layout.shapes;
  plan.ranges = setup.layout.ranges;
  plan.held_out = static_cast<int>(setup.layout.validation.size());
  plan.synthetic = static_cast<int>(setup.layout.synthetic);
  plan.min_cosine = setup.min_cosine;
  plan.time_limit = options.time_limit;
  plan.isolated = options.isolate.has_value();
  if (model.graph && !options.cache_dir.empty())
    plan.cached =
        load_measurements(options.cache_dir, cache_key(setup, model_hash(*model.graph), strategy, options))
            .has_value();
  return plan;
}

std::string TuneDryRun::to_text() const {
  std::string text =
      wrap_text(fmt::format("{}, strategy {}: would try {} candidates in at most {} s{}", model, strategy,
                            candidates.size(), time_limit, isolated ? ", each in a child process first" : ""),
                kReportWidth);
  text += shapes_line(shapes);
  text += wrap_text(
      fmt::format("would validate against eager on {}{}; least cosine {}", counted(held_out, "sample"),
                  synthetic > 0 ? fmt::format(" ({} made up)", synthetic) : "", min_cosine),
      kReportWidth);
  text += ranges_text(ranges);
  if (cached) text += wrap_text("the measurements are in the cache: nothing would be measured", kReportWidth);
  std::vector<Row> rows;
  for (const Entry& entry : candidates)
    rows.push_back({entry.name, entry.backend, entry.baseline ? "baseline" : ""});
  return text + "\n" +
         render_table({{"candidate"}, {"backend", Align::kLeft, Cut::kMiddle, 40}, {""}}, rows, kReportWidth);
}

std::string TuneDryRun::to_json() const {
  nlohmann::ordered_json json = {{"model", model}, {"strategy", strategy}};
  json["candidates"] = nlohmann::ordered_json::array();
  for (const Entry& entry : candidates)
    json["candidates"].push_back(
        {{"name", entry.name}, {"backend", entry.backend}, {"baseline", entry.baseline}});
  json["shapes"] = shapes_json(shapes);
  json["ranges"] = ranges_json(ranges);
  json["held_out"] = held_out;
  json["synthetic"] = synthetic;
  json["least_cosine"] = min_cosine;
  json["time_limit"] = time_limit;
  json["isolated"] = isolated;
  json["cached"] = cached;
  return dump_json(json);
}

}  // namespace halftone
