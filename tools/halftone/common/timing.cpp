#include "common/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace halftone::cli {

namespace {

constexpr int kWarmUpRuns = 3;
constexpr int kMaxWarmUpRuns = 50;
constexpr double kWarmUpMs = 300;

double quantile(const std::vector<double>& sorted, double q) {
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

Timing summarize_times(std::vector<double> milliseconds) {
  std::sort(milliseconds.begin(), milliseconds.end());
  double sum = 0;
  for (const double each : milliseconds) sum += each;
  return {.median_ms = quantile(milliseconds, 0.5),
          .p10_ms = quantile(milliseconds, 0.1),
          .p90_ms = quantile(milliseconds, 0.9),
          .p99_ms = quantile(milliseconds, 0.99),
          .mean_ms = sum / static_cast<double>(milliseconds.size()),
          .runs = static_cast<int>(milliseconds.size())};
}

Timing time_repeatedly(const Console& console, const std::string& what, const RepeatFor& repeat,
                       const std::function<double()>& measure) {
  double spent = 0;
  for (int i = 0; i < kWarmUpRuns || (spent < kWarmUpMs && i < kMaxWarmUpRuns); ++i) spent += measure();
  // The number of runs of a duration is not known: the bar shows milliseconds.
  const bool by_time = repeat.seconds > 0;
  const auto total = static_cast<int64_t>(by_time ? repeat.seconds * 1e3 : repeat.times);
  ProgressBar bar(console, what, total);
  std::vector<double> times;
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed_ms = [&] {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  };
  while (static_cast<int>(times.size()) < repeat.times || elapsed_ms() < repeat.seconds * 1e3) {
    times.push_back(measure());
    bar.update(by_time ? std::min(total, static_cast<int64_t>(elapsed_ms()))
                       : static_cast<int64_t>(times.size()));
  }
  return summarize_times(std::move(times));
}

std::string describe_timing(const Timing& timing) {
  return fmt::format("median (p50) {:.3f} ms, p10 {:.3f} ms, p90 {:.3f} ms, p99 {:.3f} ms, mean {:.3f} ms",
                     timing.median_ms, timing.p10_ms, timing.p90_ms, timing.p99_ms, timing.mean_ms);
}

}  // namespace halftone::cli
