// Measurements of earlier tunings, a JSON file each.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "halftone/tune/tune.h"

namespace halftone {

/// What a measurement depends on. Two tunings with equal keys may share one.
struct CacheKey {
  std::string model_hash;
  std::vector<SampleShape> shapes;
  std::vector<std::string> candidates;  ///< name and key of each, in order
  double min_cosine = 0;
  std::string metric;
  bool stop_at_first = false;
  bool beat_fp32 = true;  ///< counts only if the first valid one ends it
  /// Also the machine, its instruction set and threads, and the versions of Halftone and torch. 64
  /// hexadecimal digits.
  std::string hash() const;
};

/// The report as it was measured. Nothing if there is none; one that is damaged or that belongs to
/// something else is a line in the log and nothing.
std::optional<TuneReport> load_measurements(const std::string& cache_dir, const CacheKey& key);
/// Makes the folder where it is missing. A failure is a warning in the log: tuning goes on without it.
void store_measurements(const std::string& cache_dir, const CacheKey& key, const TuneReport& report);

}  // namespace halftone
