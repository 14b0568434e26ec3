#include "bench/run/bench_model.h"

#include <ATen/core/grad_mode.h>

#include "base/errors.h"
#include "bench/run/job.h"
#include "halftone/capture/capture_module.h"
#include "halftone/capture/open_model.h"
#include "halftone/graph/tree.h"
#include "quant/graph/quantize_graph.h"
#include "tune/samples/sample_layout.h"

namespace halftone {
namespace {

constexpr size_t kBenchCalls = 4, kCalibrationCalls = 5, kHeldOutCalls = 8;

const BenchModelInfo& info_of(const std::string& name) {
  for (const BenchModelInfo& info : bench_models())
    if (info.name == name) return info;
  fail(ErrorCode::kInvalidArgument, "bench: there is no model \"{}\"", name);
}

int64_t batch_of(const Sample& sample) {
  std::vector<c10::IValue> leaves = flatten_args(sample.args).leaves;
  for (const auto& [name, value] : sample.kwargs) tree_of(value, leaves);
  for (const c10::IValue& leaf : leaves)
    if (leaf.isTensor() && leaf.toTensor().dim() > 0) return leaf.toTensor().size(0);
  return 1;
}

}  // namespace

BenchModel::BenchModel(const BenchJob& job) {
  if (is_model_file(job.model)) {
    load_file(job);
    return;
  }
  batch_ = job.batch_size > 0 ? job.batch_size : info_of(job.model).batch_size;
  suite_ = make_suite_model(job.model, job.seed);
  samples_ = suite_->samples(batch_, kBenchCalls, job.seed).calls;
  calibration_ = suite_->samples(batch_, kCalibrationCalls, job.seed + 1);
  calibration_.held_out = suite_->samples(batch_, kHeldOutCalls, job.seed + 2).calls;
}

void BenchModel::load_file(const BenchJob& job) {
  // Read, not mapped: pages that come in with the first call would count as the call's memory.
  graph_ = open_model(job.model, {.map = false});
  if (graph_->sample_inputs.empty() && job.shapes.empty())
    fail(ErrorCode::kUnsupported, "{}: holds no sample inputs to call it with; give shapes", job.model);
  Sample first = sample_from_flat(
      *graph_, job.shapes.empty() ? graph_->sample_inputs : inputs_of_shapes(*graph_, job.shapes, job.seed));
  if (job.batch_size > 0) first = with_batch(*graph_, first, job.batch_size);
  batch_ = batch_of(first);
  samples_ = {first};
  uint64_t seed = job.seed;
  const auto add = [&](std::vector<Sample>& calls, size_t count) {
    while (calls.size() < count) calls.push_back(synthetic_sample(first, ++seed));
  };
  add(samples_, kBenchCalls);
  add(calibration_.calls, kCalibrationCalls);
  add(calibration_.held_out, kHeldOutCalls);
  interpreter_ = std::make_unique<Session>(graph_);
}

c10::IValue BenchModel::eager(size_t call) const {
  const Sample& sample = samples_.at(call);
  if (interpreter_) return (*interpreter_)(sample.args, sample.kwargs);
  const at::NoGradGuard no_grad;
  return suite_->forward(sample.args);
}

const std::shared_ptr<GraphModule>& BenchModel::graph() {
  if (graph_) return graph_;
  CaptureOptions options;
  options.name = suite_->name;
  options.input_names = suite_->input_names;
  options.check = false;  // answers are compared by the run itself
  graph_ = capture(*suite_->module, suite_->forward, samples_.at(0).args, options);
  return graph_;
}

int64_t BenchModel::weight_bytes() const {
  if (!suite_) return bytes_of_tensors(*graph_->tensors());
  TensorMap tensors;
  for (const auto& item : suite_->module->named_parameters()) tensors.emplace(item.key(), item.value());
  for (const auto& item : suite_->module->named_buffers()) tensors.emplace(item.key(), item.value());
  return bytes_of_tensors(tensors);
}

}  // namespace halftone
