// A job in training: forward, loss and backward, compiled against eager.
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros_like.h>

#include "base/errors.h"
#include "bench/run/bench_model.h"
#include "bench/run/bench_run.h"
#include "halftone/compat/baseline_compile.h"

namespace halftone {
namespace {

/// Gradients may differ a little more than results: their sums are longer.
constexpr double kGradientError = 1e-3;

struct TrainingStep {
  const SuiteModel& model;
  ForwardFunction forward;
  const Sample& sample;

  void zero_gradients() const { model.module->zero_grad(); }
  c10::IValue run() const {
    const c10::IValue result = forward(sample.args);
    model.loss(result, sample.args).backward();
    return result;
  }
  /// All of them as one: the gradient of a bias that has no effect is noise, whose direction says nothing.
  at::Tensor gradients() const {
    std::vector<at::Tensor> parts;
    for (const at::Tensor& parameter : model.module->parameters()) {
      const at::Tensor gradient = parameter.grad().defined() ? parameter.grad() : at::zeros_like(parameter);
      parts.push_back(gradient.detach().reshape({-1}));
    }
    return at::cat(parts);
  }
};

struct StepAnswer {
  c10::IValue result;
  at::Tensor gradients;
};

StepAnswer answer_of(const TrainingStep& step) {
  step.zero_gradients();
  StepAnswer answer{step.run(), {}};
  answer.gradients = step.gradients();
  step.zero_gradients();
  return answer;
}

CompileModuleOptions training_options(const BenchJob& job) {
  CompileModuleOptions options = baseline_module_options(job.baseline);
  if (job.backend == "halftone") return options;
  options.backend = job.backend;  // it knows nothing of Halftone's options
  options.options.clear();
  return options;
}

void judge_training(BenchRun& run, const StepAnswer& expected, const StepAnswer& found) {
  AccuracyCount results, gradients;
  results.add(expected.result, found.result, {});
  gradients.add(expected.gradients, found.gradients, {});
  Accuracy accuracy = results.result();
  const Accuracy of_gradients = gradients.result();
  accuracy.nans += of_gradients.nans;
  accuracy.min_cosine = std::min(accuracy.min_cosine, of_gradients.min_cosine);
  judge_bench(run, accuracy);
  if (run.row.accuracy == "pass" && !(of_gradients.relative_error <= kGradientError)) {
    run.row.accuracy = "fail_accuracy";
    run.row.error = fmt::format("relative error of the gradients {:.3g}, allowed {:.3g}",
                                of_gradients.relative_error, kGradientError);
  }
}

TimedCandidate timed_candidate_of(std::string name, const TrainingStep& step) {
  return {std::move(name), [&step] { step.run(); }, [&step] { step.zero_gradients(); }};
}

}  // namespace

void run_training(BenchRun& run) {
  const BenchModel loaded(run.job);
  run.row.batch_size = loaded.batch();
  run.row.bytes = loaded.weight_bytes();
  const SuiteModel& model = *loaded.suite();
  model.module->train();
  const Sample& sample = loaded.samples().at(0);

  run.word = "eager_1st_run_fail_to_run";
  const TrainingStep eager{model, model.forward, sample};
  const StepAnswer expected = answer_of(eager);
  const auto eager_peak = peak_gigabytes(*run.row.bytes, [&] { answer_of(eager); });

  run.word = "fail_to_run";
  std::optional<StepAnswer> found;
  std::optional<CompiledModule> compiled;
  double seconds = 0;
  const auto our_peak = peak_gigabytes(*run.row.bytes, [&] {
    seconds = seconds_of([&] {
      compiled = compile(model.module, model.forward, training_options(run.job));
      found = answer_of({model, *compiled, sample});
    });
    answer_of({model, *compiled, sample});
  });
  run.row.compilation_latency = seconds;
  if (compiled->counters().eager_calls > 0)
    fail(ErrorCode::kInternal, "{}: the step ran in eager, not compiled", run.job.model);
  const TrainingStep ours{model, *compiled, sample};
  if (run.job.performance) {
    set_peaks(run.row, eager_peak, our_peak);
    measure_bench(run, timed_candidate_of("eager", eager), timed_candidate_of(run.job.backend, ours));
  }
  if (run.job.accuracy) judge_training(run, expected, *found);
}

}  // namespace halftone
