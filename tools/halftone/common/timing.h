// Timing of repeated work: warm-up, then the median and the spread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/console.h"

namespace halftone::cli {

struct Timing {
  double median_ms = 0;
  double p10_ms = 0;
  double p90_ms = 0;
  double p99_ms = 0;
  double mean_ms = 0;
  int runs = 0;
};

/// Quantiles by linear interpolation between the order statistics. At least one sample.
Timing summarize_times(std::vector<double> milliseconds);

/// How long: so many times, or for so many seconds (0: not by time), whichever is later.
struct RepeatFor {
  int times = 1;
  double seconds = 0;
};

/// Calls `measure`, which does the work once and returns its milliseconds: first as warm-up (3 times at
/// least, longer while all of it took less than 0.3 s), then as `repeat` says.
Timing time_repeatedly(const Console& console, const std::string& what, const RepeatFor& repeat,
                       const std::function<double()>& measure);

/// "median (p50) 12.31 ms, p10 12.02 ms, p90 13.90 ms, p99 15.02 ms, mean 12.50 ms"
std::string describe_timing(const Timing& timing);

}  // namespace halftone::cli
