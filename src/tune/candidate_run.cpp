#include "tune/candidate_run.h"

#include <chrono>
#include <optional>
#include <utility>

#include "base/errors.h"
#include "graph/aten/torch_errors.h"
#include "halftone/graph/tree.h"
#include "quant/graph/diagnose_difference.h"
#include "quant/graph/quantize_graph.h"
#include "tune/accuracy.h"
#include "tune/candidates.h"
#include "tune/measure/machine.h"
#include "tune/samples/sample_layout.h"

namespace halftone {
namespace {

constexpr size_t kMaxMessage = 400;

double seconds_of(const std::function<void()>& action) {
  const auto start = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<at::Tensor> tensors_of(const std::vector<c10::IValue>& answers) {
  std::vector<c10::IValue> leaves;
  for (const c10::IValue& answer : answers) tree_of(answer, leaves);
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& leaf : leaves) {
    if (leaf.isTensor()) tensors.push_back(leaf.toTensor());
  }
  return tensors;
}

}  // namespace

CandidateRun::CandidateRun(TuneCandidate candidate) : candidate_(std::move(candidate)) {
  const Backend backend(candidate_.recipe);
  row.name = candidate_.name;
  row.backend = backend.describe();
  row.key = backend.key();
  row.is_eager = is_eager_baseline(*candidate_.recipe);
  row.is_fp32 = is_fp32_baseline(*candidate_.recipe);
}

void CandidateRun::build(const std::shared_ptr<const GraphModule>& original,
                         const std::vector<Sample>& samples, const std::string& cache_dir) {
  const PeakMemory memory;
  ReadyModel ready;
  row.compile_ms =
      1e3 * seconds_of([&] { ready = candidate_.recipe->prepare(original, samples, cache_dir); });
  if (!ready.module) fail(ErrorCode::kInternal, "{} made nothing", row.backend);
  row.bytes = bytes_of_tensors(*ready.module->tensors());
  writes_inputs_ = !ready.module->mutated_input_names().empty();
  session_ = std::make_unique<Session>(ready.module, ready.executor);
  ready_ = std::move(ready);
  has_state_ = !session_->state_names().empty();
  call(samples.front());
  row.peak_bytes = memory.growth();
}

void CandidateRun::release() {
  session_.reset();
  ready_ = {};
}

std::optional<ReadyModel> CandidateRun::take_ready() {
  if (!is_built()) return std::nullopt;
  ReadyModel ready = ready_;
  release();
  return ready;
}

c10::IValue CandidateRun::call(const Sample& sample) {
  Sample own = writes_inputs_ ? copy_of(sample) : sample;
  return (*session_)(std::move(own.args), std::move(own.kwargs));
}

std::vector<c10::IValue> CandidateRun::answers(const Sample& sample) {
  if (!has_state_) return {call(sample)};
  session_->reset();
  // Answers may be views of the state, which the next call changes.
  const auto kept = [](const c10::IValue& value) { return copy_of(Sample{{value}, {}}).args.at(0); };
  std::vector<c10::IValue> all;
  for (int i = 0; i < 2; ++i) all.push_back(kept(call(sample)));
  return all;
}

void CandidateRun::require_same_again(const GraphModule& graph, const Sample& sample,
                                      const std::vector<c10::IValue>& answers) {
  require_same_answers(graph, tensors_of(answers), tensors_of(this->answers(sample)));
}

TimedCandidate CandidateRun::timed_candidate(const Sample& sample) {
  TimedCandidate timed_candidate;
  timed_candidate.name = row.name;
  const auto next = std::make_shared<Sample>(sample);
  timed_candidate.run = [this, next] { (*session_)(next->args, next->kwargs); };
  if (has_state_ || writes_inputs_) {
    timed_candidate.prepare = [this, next, &sample] {
      if (has_state_) session_->reset();
      if (writes_inputs_) *next = copy_of(sample);
    };
  }
  return timed_candidate;
}

void CandidateRun::validate(const std::vector<Sample>& samples,
                            const std::vector<std::vector<c10::IValue>>& expected, const TuneMetric& metric) {
  AccuracyCount count;
  for (size_t i = 0; i < samples.size(); ++i) {
    std::vector<c10::IValue> got;
    call_seconds_ = seconds_of([&] { got = answers(samples[i]); }) / (has_state_ ? 2 : 1);
    for (size_t k = 0; k < got.size(); ++k) {
      if (k >= expected[i].size()) fail(ErrorCode::kInternal, "it has state where eager has none");
      count.add(expected[i][k], got[k], metric);
    }
  }
  row.accuracy = count.result();
}

std::string short_message(const std::exception& error) {
  std::string text = error_text(error);
  text = text.substr(0, text.find('\n'));
  if (text.size() > kMaxMessage) text = text.substr(0, kMaxMessage) + "…";
  return text;
}

}  // namespace halftone
