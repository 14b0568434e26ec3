// Autoquant: calibration, planning and quantizing; the entry points of halftone/tune/autoquant.h.
#include "halftone/tune/autoquant.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "archive/bytes/text.h"
#include "base/errors.h"
#include "base/log.h"
#include "base/scheme_table.h"
#include "halftone/base/version.h"
#include "halftone/cli/kernels.h"
#include "halftone/quant/quantize.h"
#include "tune/autoquant/plan_key.h"
#include "tune/autoquant/planner.h"
#include "tune/autoquant/sample_keeper.h"
#include "tune/autoquant/time_cache.h"
#include "tune/measure/machine.h"
#include "tune/report/fingerprint.h"
#include "tune/setup.h"

namespace halftone {
namespace {

using AutoquantClock = std::chrono::steady_clock;

std::string model_type(const ModelSource& model) {
  if (model.module) return model.module->name();
  return model.graph->name.empty() ? "GraphModule"
                                   : std::filesystem::path(model.graph->name).filename().string();
}

/// The layers of a C++ module that quantize_ would take.
std::vector<LayerInfo> module_layers(torch::nn::Module& module, const AutoquantOptions& options,
                                     const std::string& type) {
  QuantizeOptions quantize;
  quantize.include = options.include;
  quantize.exclude = options.exclude;
  quantize.dry_run = true;
  std::vector<LayerInfo> layers;
  try {
    for (const LayerReport& report : quantize_(module, Int8WeightOnlyConfig{}, quantize).layers) {
      if (report.outcome == LayerReport::Outcome::kQuantized) layers.push_back(report.layer);
    }
  } catch (const Error& error) {
    const bool patterns = !options.include.empty() || !options.exclude.empty();
    if (error.code() != ErrorCode::kInvalidArgument || patterns) throw;
  }
  if (layers.empty()) aq::fail_not_autoquantizable(type);
  return layers;
}

void check_options(const AutoquantOptions& options) {
  if (!(options.time_limit > 0))
    fail(ErrorCode::kInvalidArgument, "autoquant: the time limit must be above 0");
  for (const double cosine : {options.min_cosine, options.min_layer_cosine}) {
    if (!(cosine <= 1 && cosine >= 0))
      fail(ErrorCode::kInvalidArgument, "autoquant: a least cosine must be from 0 to 1, not {}", cosine);
  }
  aq::schemes_to_try(options);  // unknown names
}

void apply_to(const ModelSource& model, const AutoquantPlan& plan) {
  if (!plan.quantizes()) return;
  if (model.graph) {
    apply_plan(*model.graph, plan);
  } else {
    apply_plan(*model.module, plan);
  }
}

/// Nothing, and a line in the log, for what is not a plan of these layers.
std::optional<AutoquantPlan> plan_of_cache(const std::string& text, const std::vector<LayerInfo>& layers) {
  try {
    AutoquantPlan plan = AutoquantPlan::from_json(text, "autoquant's cache");
    for (const AutoquantLayer& layer : plan.layers) {
      const bool known = std::any_of(layers.begin(), layers.end(), [&](const LayerInfo& info) {
        return info.name == layer.name && (layer.n == 0 || layer.n == info.n) &&
               (layer.k == 0 || layer.k == info.k);
      });
      if (!known)
        fail(ErrorCode::kCorruptFile,
             "autoquant's cache: a plan for a layer {} of {} × {}, which is not here", quote_text(layer.name),
             layer.n, layer.k);
    }
    return plan;
  } catch (const Error& error) {
    log(LogLevel::kWarning, "{}; measured anew", error.what());
    return std::nullopt;
  }
}

}  // namespace

/// A graph is recorded while it is called; a C++ module is called as it is, and its graph is recorded with
/// the kept calls when the plan is made.
struct Autoquant::State {
  State(ModelSource source, AutoquantOptions given) : model(std::move(source)), options(std::move(given)) {
    if (!model.graph && !model.module) fail(ErrorCode::kInvalidArgument, "autoquant: there is no model");
    check_options(options);
    if (model.module) {
      layers = module_layers(*model.module, options, model_type(model));
      return;
    }
    marked.emplace(aq::mark(*model.graph, options.include, options.exclude, model_type(model)));
    for (const GraphLayer& layer : marked->layers) layers.push_back(layer.info);
    recorder.emplace(*marked, options.seed);
    session.emplace(marked->module);
  }

  c10::IValue calibrate(const Sample& sample) {
    if (finished) fail(ErrorCode::kState, "autoquant: calibrate() after finalize()");
    if (marked) {
      // Before the call, which may write to its arguments.
      aq::SampleKeeper::Kept kept = keeper.copy(sample);
      c10::IValue result = recorder->run(*session, sample);
      keeper.add(std::move(kept));
      return result;
    }
    if (!sample.kwargs.empty())
      fail(ErrorCode::kInvalidArgument, "autoquant: a C++ module has no keyword arguments");
    if (!model.forward) fail(ErrorCode::kInvalidArgument, "a C++ module needs the function that calls it");
    aq::SampleKeeper::Kept kept = keeper.copy(sample);
    const at::NoGradGuard no_grad;
    c10::IValue result = model.forward(sample.args);
    keeper.add(std::move(kept));
    return result;
  }

  /// What planning needs of the samples, by now.
  SampleLayout layout() const {
    Samples all = given;
    all.calls = keeper.samples();
    return lay_out(all, model.graph ? marked->module.get() : nullptr, options.spec, options.seed);
  }

  void capture_module(const SampleLayout& samples) {
    TuningSetup setup;
    setup.layout = samples;
    setup.spec = options.spec;
    setup.spec.dynamic = samples.dynamic;
    const auto graph = capture_model(model, setup, c10::Device(c10::DeviceType::CPU));
    marked.emplace(aq::mark(*graph, "", "", model_type(model)));
    std::vector<std::string> names;
    for (const LayerInfo& layer : layers) names.push_back(layer.name);
    aq::keep_only(*marked, names);
    recorder.emplace(*marked, options.seed);
    Session own(marked->module);
    for (const Sample& sample : samples.calls) {
      own.reset();
      recorder->run(own, sample, keeper.weight_of(sample));
    }
  }

  std::vector<LayerInfo> unseen() const {
    std::vector<LayerInfo> missing;
    for (const LayerInfo& layer : layers) {
      const bool seen =
          std::any_of(marked->layers.begin(), marked->layers.end(), [&](const GraphLayer& each) {
            return each.info.name == layer.name &&
                   std::any_of(each.uses.begin(), each.uses.end(),
                               [&](const LayerUse& use) { return !recorder->rows(use.node).empty(); });
          });
      if (!seen) missing.push_back(layer);
    }
    if (!missing.empty() && options.error_on_unseen) {
      std::vector<std::string> names;
      for (const LayerInfo& layer : missing) names.push_back(layer.name);
      fail(ErrorCode::kInvalidArgument,
           "autoquant: calibration did not see {} of {} layers (error_on_unseen = false leaves them as they "
           "are): {}",
           names.size(), layers.size(), fmt::join(names, ", "));
    }
    return missing;
  }

  std::vector<double> weights_of(const SampleLayout& samples) const {
    std::vector<double> weights;
    for (const Sample& sample : samples.shape_calls)
      weights.push_back(static_cast<double>(keeper.calls_of_shape(sample)) /
                        static_cast<double>(keeper.calls()));
    return weights;
  }

  /// The plan that these calls would lead to, if it is known; they are not made. Of C++ modules this is not
  /// known before they are captured.
  std::optional<AutoquantPlan> known_plan(const std::vector<Sample>& calls) {
    if (!model.graph || !options.use_cache) return std::nullopt;
    for (const Sample& call : calls) keeper.add(keeper.copy(call));
    const SampleLayout samples = layout();
    const auto known = aq::find_plan(options.cache_dir,
                                     aq::plan_key(hash_of_model(), samples, weights_of(samples), options));
    keeper = {};
    return known ? plan_of_cache(*known, layers) : std::nullopt;
  }

  const std::string& hash_of_model() {
    if (hash.empty()) hash = model_hash(*marked->module);
    return hash;
  }

  AutoquantPlan plan() {
    if (finished) fail(ErrorCode::kState, "autoquant: the model is quantized already");
    if (keeper.calls() == 0)
      fail(ErrorCode::kState, "autoquant: nothing was calibrated: call calibrate() before");
    const at::NoGradGuard no_grad;
    const auto start = AutoquantClock::now();
    const SampleLayout samples = layout();
    if (model.module) capture_module(samples);
    const std::vector<LayerInfo> missing = unseen();
    if (model.module) hash.clear();  // it may have been trained since
    const std::vector<double> weights = weights_of(samples);
    const std::string key = aq::plan_key(hash_of_model(), samples, weights, options);
    if (options.use_cache) {
      const auto known = aq::find_plan(options.cache_dir, key);
      if (auto plan = known ? plan_of_cache(*known, layers) : std::nullopt) return *std::move(plan);
    }
    aq::PlanResult result = aq::make_plan({*marked, *recorder, samples, weights, missing, options, start});
    describe(result.plan);
    result.plan.seconds = std::chrono::duration<double>(AutoquantClock::now() - start).count();
    if (result.complete) aq::store_plan(options.cache_dir, key, result.plan.to_json());
    return std::move(result.plan);
  }

  void describe(AutoquantPlan& plan) const {
    plan.model = !options.spec.name.empty() ? options.spec.name : model_type(model);
    plan.model_hash = hash;
    plan.cpu = cpu_name();
    plan.isa = active_instruction_set();
    plan.threads = at::get_num_threads();
    plan.version = version();
    plan.measured_at = utc_now();
  }

  ModelSource model;
  AutoquantOptions options;
  Samples given;  ///< held-out calls, batch and dynamic sizes, where the caller has said them
  std::vector<LayerInfo> layers;
  std::optional<aq::MarkedModel> marked;  ///< of a C++ module: after its capture
  std::optional<aq::Recorder> recorder;
  std::optional<Session> session;
  aq::SampleKeeper keeper;
  std::string hash;  ///< of the marked graph; empty: not asked for yet
  bool finished = false;
};

Autoquant::Autoquant(ModelSource model, AutoquantOptions options)
    : state_(std::make_unique<State>(std::move(model), std::move(options))) {}
Autoquant::~Autoquant() = default;
Autoquant::Autoquant(Autoquant&&) noexcept = default;
Autoquant& Autoquant::operator=(Autoquant&&) noexcept = default;

const std::vector<LayerInfo>& Autoquant::marked() const {
  return state_->layers;
}

void Autoquant::expect(const Samples& samples) {
  state_->given = samples;
  state_->given.calls.clear();
}

c10::IValue Autoquant::calibrate(const Sample& sample) {
  return state_->calibrate(sample);
}

AutoquantPlan Autoquant::plan() {
  return state_->plan();
}

AutoquantPlan Autoquant::finalize() {
  AutoquantPlan plan = state_->plan();
  apply_to(state_->model, plan);
  state_->finished = true;
  return plan;
}

std::vector<std::string> default_autoquant_schemes() {
  std::vector<std::string> names;
  for (const SchemeEntry& entry : scheme_table())
    if (entry.in_autoquant) names.emplace_back(entry.names[0]);
  return names;
}

AutoquantPlan plan_autoquant(const ModelSource& model, const Samples& samples,
                             const AutoquantOptions& options) {
  Autoquant session(model, options);
  std::vector<Sample> calls = samples.calls;
  if (calls.empty() && model.graph && !model.graph->sample_inputs.empty())
    calls.push_back(sample_from_flat(*model.graph, model.graph->sample_inputs));
  if (calls.empty())
    fail(ErrorCode::kInvalidArgument,
         "autoquant needs samples: none were given, and the model has none itself");
  session.expect(samples);
  if (auto known = session.state_->known_plan(calls)) return *std::move(known);
  for (const Sample& call : calls) session.calibrate(call);
  return session.plan();
}

AutoquantPlan autoquant(const ModelSource& model, const Samples& samples, const AutoquantOptions& options) {
  AutoquantPlan plan = plan_autoquant(model, samples, options);
  apply_to(model, plan);
  return plan;
}

}  // namespace halftone
