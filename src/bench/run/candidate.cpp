#include "bench/run/candidate.h"

#include "bench/run/job.h"
#include "halftone/compile/compilers.h"
#include "halftone/quant/weight_format.h"
#include "halftone/tune/autoquant.h"
#include "quant/graph/find_layers.h"

namespace halftone {
namespace {

/// Layers that the format cannot take (more inputs than its sums can hold) stay as they are, and the report
/// says why: a suite has all kinds of models.
QuantizeReport quantize_what_fits(GraphModule& module, const QuantConfig& config) {
  const auto format = format_of(config);
  QuantizeOptions options;
  options.filter = [&](const LayerInfo& layer) { return format->refuse(layer.n, layer.k).empty(); };
  QuantizeReport report = quantize_(module, config, options);
  for (LayerReport& layer : report.layers) {
    const std::string refusal = format->refuse(layer.layer.n, layer.layer.k);
    if (layer.outcome == LayerReport::Outcome::kKept && !refusal.empty()) layer.reason = refusal;
  }
  return report;
}

}  // namespace

std::string nothing_to_quantize(const BenchJob& job, const GraphModule& module) {
  const bool autoquant = job.scheme == "autoquant";
  const auto config = autoquant ? std::nullopt : bench_scheme_config(job.scheme);
  if (!autoquant && !config) return {};
  std::string refusal;
  for (const GraphLayer& layer : find_layers(module)) {
    if (layer.info.kind == "embedding" || layer.info.kind == "parameter") continue;
    if (layer.state.already) return {};  // a quantized file: quantize_ has its own words for it
    if (!layer.state.obstacle.empty()) continue;
    if (!layer.state.convolution.empty() && (autoquant || !format_of(*config)->has_convolution())) continue;
    refusal = config ? format_of(*config)->refuse(layer.info.n, layer.info.k) : std::string();
    if (refusal.empty()) return {};
  }
  return refusal.empty()
             ? "nothing to quantize: the model has no layer that could be"
             : fmt::format("nothing to quantize: {} takes none of the layers ({}, …)", job.scheme, refusal);
}

InferenceCandidate::InferenceCandidate(const BenchJob& job, BenchModel& model)
    : module_(model.graph()->clone()) {
  for (const Sample& sample : model.samples()) inputs_.push_back(flat_inputs(*module_, sample));
  module_->sample_inputs = inputs_.at(0);
  if (job.scheme == "autoquant") {
    AutoquantOptions options;
    // A fifth of the allowed error is left for inputs that planning does not see.
    options.min_cosine = 1 - 0.8 * (1 - bench_accuracy_bound(job.scheme).cosine.value());
    options.error_on_unseen = false;
    options.cache_dir = job.cache_dir;
    options.seed = job.seed;
    // Never on the calls that the row is judged by: a check on what was planned for could not fail.
    plan_ = plan_autoquant(ModelSource(module_), model.calibration(), options);
    report_ = apply_plan(*module_, *plan_);
  } else if (const auto config = bench_scheme_config(job.scheme)) {
    report_ = quantize_what_fits(*module_, *config);
  }
}

void InferenceCandidate::compile(const BenchJob& job) {
  if (job.backend == "halftone") {
    compiled_ = baseline_compile(module_, job.baseline);
    session_ = std::make_unique<Session>(module_, compiled_);
  } else {
    function_ = lookup_compiler(job.backend)(module_, inputs_.at(0), {});
  }
}

std::vector<c10::IValue> InferenceCandidate::run(size_t call) const {
  return session_ ? session_->run(inputs_.at(call)) : function_(inputs_.at(call));
}

}  // namespace halftone
