// Counts of the findings of the trials.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "trial.h"

namespace halftone::hostile {

struct Tally {
  std::map<TrialResult::Outcome, uint64_t> outcomes;
  std::set<std::string> refusals, steps, layouts;          ///< kinds of messages; as in TrialResult
  std::vector<std::pair<uint64_t, std::string>> failures;  ///< item, and why
  uint64_t trials = 0;

  /// A trial that came to its end.
  void add(uint64_t item, const TrialResult& result);
  /// One that did not.
  void add_crash(uint64_t item, const std::string& why);
};

}  // namespace halftone::hostile
