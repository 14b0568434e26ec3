// Times that were measured, in memory for the process and on disk; and whole plans. Thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "halftone/tune/autoquant.h"

namespace halftone::aq {

/// CPU, instruction set, threads and versions: what a time depends on beside problem and scheme.
std::string machine_text();

class TimeCache {
 public:
  /// `folder`: empty: memory only. A damaged file is a line in the log.
  TimeCache(std::string folder, bool read);
  std::optional<double> find(const std::string& problem, const std::string& scheme) const;
  void add(const std::string& problem, const std::string& scheme, double milliseconds);
  /// Writes what was added, with what the file holds by now. A failure is a line in the log.
  void save() const;

 private:
  std::string folder_;
  bool read_;
  std::string machine_;
  std::vector<AutoquantCacheEntry> added_;
};

/// A plan as JSON by what it depends on (a hash).
std::optional<std::string> find_plan(const std::string& folder, const std::string& hash);
void store_plan(const std::string& folder, const std::string& hash, const std::string& json);

}  // namespace halftone::aq
