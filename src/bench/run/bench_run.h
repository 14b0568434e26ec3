// One run of a job: fills the row, and knows what an error means at each point.
#pragma once

#include <functional>
#include <string>

#include "halftone/bench/bench.h"
#include "halftone/tune/measure.h"
#include "tune/accuracy.h"

namespace halftone {

/// The row so far, and the word that stands for whatever is thrown next.
struct BenchRun {
  const BenchJob& job;
  BenchRow& row;
  std::string word = "model_fail_to_load";
};

void run_inference(BenchRun& run);
void run_training(BenchRun& run);

/// What a call holds in memory at most: `weights` and what `work` added. Memory that earlier work left free
/// is given back first. GB; nothing if the system does not say it.
std::optional<double> peak_gigabytes(int64_t weights, const std::function<void()>& work);

/// Seconds that `work` took.
double seconds_of(const std::function<void()>& work);

/// Takes turns and writes speed-up, time and spread into the row.
void measure_bench(BenchRun& run, TimedCandidate eager, TimedCandidate candidate);

/// Writes cosine and verdict.
void judge_bench(BenchRun& run, const Accuracy& accuracy);

/// The peaks, and the first through the second.
void set_peaks(BenchRow& row, std::optional<double> eager, std::optional<double> candidate);

}  // namespace halftone
