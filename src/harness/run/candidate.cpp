#include "harness/run/candidate.h"

#include "halftone/autoquant.h"
#include "halftone/backend.h"
#include "harness/run/job.h"
#include "quant/graph/quantize_graph.h"

namespace halftone {

InferenceCandidate::InferenceCandidate(const BenchJob& job, BenchModel& model)
    : module_(copy_module(*model.graph())) {
  for (const Sample& sample : model.samples()) inputs_.push_back(flat_inputs(*module_, sample));
  module_->sample_inputs = inputs_.at(0);
  if (job.scheme == "autoquant") {
    AutoquantOptions options;
    options.least_cosine = bench_accuracy_bound(job.scheme).cosine.value();
    options.error_on_unseen = false;
    options.cache_dir = job.cache_dir;
    options.seed = job.seed;
    plan_ = plan_autoquant(ModelSource(module_), model.samples(), options);
    report_ = apply_plan(*module_, *plan_);
  } else if (const auto config = bench_scheme_config(job.scheme)) {
    report_ = quantize_(*module_, *config);
  }
}

void InferenceCandidate::compile(const BenchJob& job) {
  if (job.backend == "halftone") {
    compiled_ = baseline_compile(module_, job.baseline);
    session_ = std::make_unique<Session>(module_, compiled_);
  } else {
    function_ = lookup_backend(job.backend)(module_, inputs_.at(0), {});
  }
}

std::vector<c10::IValue> InferenceCandidate::run(size_t call) const {
  return session_ ? session_->run(inputs_.at(call)) : function_(inputs_.at(call));
}

}  // namespace halftone
