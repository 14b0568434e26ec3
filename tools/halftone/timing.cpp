#include "timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace halftone::cli {

namespace {

constexpr int kWarmUpRuns = 3;
constexpr int kMostWarmUpRuns = 50;
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
  return {quantile(milliseconds, 0.5), quantile(milliseconds, 0.1), quantile(milliseconds, 0.9)};
}

Timing time_repeatedly(const Console& console, const std::string& what, int repeat,
                       const std::function<double()>& measure) {
  double spent = 0;
  for (int i = 0; i < kWarmUpRuns || (spent < kWarmUpMs && i < kMostWarmUpRuns); ++i) spent += measure();
  ProgressBar bar(console, what, repeat);
  std::vector<double> times;
  times.reserve(repeat);
  for (int i = 0; i < repeat; ++i) {
    times.push_back(measure());
    bar.update(i + 1);
  }
  return summarize_times(std::move(times));
}

std::string describe_timing(const Timing& timing) {
  return fmt::format("median {:.3f} ms, p10 {:.3f} ms, p90 {:.3f} ms", timing.median_ms, timing.p10_ms,
                     timing.p90_ms);
}

}  // namespace halftone::cli
