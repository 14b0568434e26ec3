// A job in inference.
#include "bench/run/bench_run.h"
#include "bench/run/candidate.h"
#include "bench/run/layers.h"
#include "quant/graph/diagnose_difference.h"
#include "quant/graph/quantize_graph.h"

namespace halftone {
namespace {

/// Eager's answers, and whether it gives them twice: a model that draws numbers cannot be compared.
std::vector<c10::IValue> eager_answers(BenchRun& run, BenchModel& model) {
  run.word = "eager_1st_run_fail_to_run";
  std::vector<c10::IValue> answers;
  for (size_t i = 0; i < model.samples().size(); ++i) answers.push_back(model.eager(i));
  run.word = "eager_2nd_run_fail_to_run";
  AccuracyCount count;
  count.add(answers.at(0), model.eager(0), {});
  if (run.job.accuracy && (count.result().relative_error > 1e-4 || count.result().nans > 0)) {
    run.row.accuracy = "eager_two_runs_differ";
    run.row.error = model.suite()
                        ? "the model gives another answer to the same call: results cannot be compared"
                        : describe_two_answers(*model.graph());
  }
  return answers;
}

Accuracy accuracy_of(const InferenceCandidate& candidate, const std::vector<c10::IValue>& expected) {
  AccuracyCount count;
  for (size_t i = 0; i < expected.size(); ++i)
    count.add(expected[i], c10::ivalue::Tuple::create(candidate.run(i)), {});
  return count.result();
}

void measure_inference(BenchRun& run, const BenchModel& model, const InferenceCandidate& candidate) {
  const size_t calls = model.samples().size();
  size_t eager_turn = 0, our_turn = 0;  // the calls in turn: not always the same rows of an embedding
  measure_bench(run, {"eager", [&] { model.eager(eager_turn++ % calls); }},
                {run.job.backend, [&] { candidate.run(our_turn++ % calls); }});
}

void count_unsupported(BenchRow& row, const InferenceCandidate& candidate) {
  if (!candidate.compiled()) return;
  const PlanReport report = candidate.compiled()->report(candidate.inputs(0));
  // A graph that the interpreter runs as a whole is left to it with every node.
  row.unsupported_ops = static_cast<int64_t>(
      report.interpreted.empty() ? report.left_to_aten.size() : candidate.module()->graph().nodes().size());
}

}  // namespace

void run_inference(BenchRun& run) {
  BenchModel model(run.job);
  run.row.batch_size = model.batch();
  const std::vector<c10::IValue> expected = eager_answers(run, model);
  if (!run.row.accuracy.empty()) return;
  const auto eager_peak = peak_gigabytes(model.weight_bytes(), [&] { model.eager(0); });

  run.word = "fail_to_run";
  run.row.error = nothing_to_quantize(run.job, *model.graph());
  if (!run.row.error.empty()) {
    run.row.accuracy = "pass_due_to_skip";
    return;
  }
  std::unique_ptr<InferenceCandidate> candidate;
  double seconds = seconds_of([&] { candidate = std::make_unique<InferenceCandidate>(run.job, model); });
  run.row.bytes = bytes_of_tensors(*candidate->module()->tensors());
  const auto our_peak = peak_gigabytes(*run.row.bytes, [&] {
    seconds += seconds_of([&] {
      candidate->compile(run.job);
      candidate->run(0);
    });
    candidate->run(0);
  });
  run.row.compilation_latency = seconds;
  if (run.job.performance) set_peaks(run.row, eager_peak, our_peak);
  count_unsupported(run.row, *candidate);
  const Accuracy accuracy = accuracy_of(*candidate, expected);
  if (run.job.performance) measure_inference(run, model, *candidate);
  if (run.job.layers) describe_layers(run.row, model, *candidate);
  if (run.job.accuracy) judge_bench(run, accuracy);
}

}  // namespace halftone
