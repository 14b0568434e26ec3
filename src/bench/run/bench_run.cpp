#include "bench/run/bench_run.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <malloc.h>

#include <chrono>
#include <new>

#include "base/errors.h"
#include "bench/run/job.h"
#include "graph/aten/torch_errors.h"
#include "tune/measure/machine.h"

namespace halftone {
namespace {

/// Threads of ATen as the job asks, and afterwards as they were.
class ThreadsOfJob {
 public:
  explicit ThreadsOfJob(int threads) : before_(at::get_num_threads()) {
    if (threads > 0) at::set_num_threads(threads);
  }
  ~ThreadsOfJob() {
    if (at::get_num_threads() != before_) at::set_num_threads(before_);
  }
  ThreadsOfJob(const ThreadsOfJob&) = delete;
  ThreadsOfJob& operator=(const ThreadsOfJob&) = delete;

 private:
  int before_;
};

/// ATen says so in words only.
bool is_out_of_memory(std::string_view message) {
  return message.find("you tried to allocate") != std::string_view::npos;
}

void set_failure(const BenchRun& run, std::string_view message, bool out_of_memory) {
  const bool eager = run.word.starts_with("eager");
  if (!out_of_memory) {
    run.row.accuracy = run.word;
  } else {
    run.row.accuracy = eager ? "eager_1st_run_OOM" : "OOM";
  }
  run.row.error = message;
}

void run_job(BenchRun& run) {
  try {
    const ThreadsOfJob threads(run.job.threads);
    run.job.mode == "training" ? run_training(run) : run_inference(run);
  } catch (const std::bad_alloc&) {
    set_failure(run, "out of memory: more than the process may have", true);
  } catch (const std::exception& error) {
    const std::string message = error_text(error);
    set_failure(run, message, is_out_of_memory(message));
  } catch (...) {
    set_failure(run, "something that is no exception was thrown", false);
  }
}

}  // namespace

BenchRow run_bench(const BenchJob& job) {
  check_bench_job(job);
  BenchRow row = bench_row_of(job);
  BenchRun run{job, row};
  run_job(run);
  return row;
}

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::optional<double> peak_gigabytes(int64_t weights, const std::function<void()>& work) {
  malloc_trim(0);
  const PeakMemory peak;
  work();
  const auto growth = peak.growth();
  if (!growth) return std::nullopt;
  return static_cast<double>(weights + *growth) / 1e9;
}

void set_peaks(BenchRow& row, std::optional<double> eager, std::optional<double> candidate) {
  row.eager_peak_mem = eager;
  row.halftone_peak_mem = candidate;
  if (eager && candidate && *candidate > 0) row.compression_ratio = *eager / *candidate;
}

void measure_bench(BenchRun& run, TimedCandidate eager, TimedCandidate candidate) {
  eager.always = candidate.keep = true;
  MeasureOptions options;
  options.seconds = run.job.seconds;
  const Measurements measured = measure({std::move(eager), std::move(candidate)}, options);
  for (const MeasuredTime& time : measured.rows)
    if (time.failed) fail(ErrorCode::kInternal, "{} failed while it was timed: {}", time.name, time.reason);
  if (measured.too_busy) {
    // The answers are as good as ever; of the times nothing is known.
    run.row.error = MachineBusy(measured.disturbed, measured.disturbed + measured.rounds).what();
    return;
  }
  const MeasuredTime& ours = measured.rows.at(1);
  run.row.speedup = paired_ratio(measured.rows.at(0), ours);
  run.row.abs_latency = ours.median;
  run.row.spread = (ours.p90 - ours.p10) / ours.median;
  const Interval interval = paired_interval(measured.rows.at(0), ours);
  run.row.speedup_low = interval.low;
  if (!interval.is_open()) run.row.speedup_high = interval.high;
  run.row.rounds = measured.rounds;
}

void judge_bench(BenchRun& run, const Accuracy& accuracy) {
  const BenchAccuracyBound bound = bench_accuracy_bound(run.job.scheme);
  run.row.cosine = accuracy.min_cosine;
  run.row.accuracy = "fail_accuracy";
  if (accuracy.nans > 0) {
    run.row.error =
        fmt::format("{} elements are not finite where eager's are, or the other way round", accuracy.nans);
  } else if (bound.relative_error && !(accuracy.relative_error <= *bound.relative_error)) {
    run.row.error =
        fmt::format("relative error {:.3g}, allowed {:.3g}", accuracy.relative_error, *bound.relative_error);
  } else if (bound.cosine && !(accuracy.min_cosine >= *bound.cosine)) {
    run.row.error = fmt::format("cosine {:.5f}, at least {} is wanted", accuracy.min_cosine, *bound.cosine);
  } else {
    run.row.accuracy = "pass";
  }
}

}  // namespace halftone
