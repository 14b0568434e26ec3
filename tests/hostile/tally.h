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

/// Of the items `first` to `next`.
struct Tally {
  uint64_t first = 0, next = 0;
  std::map<TrialResult::Outcome, uint64_t> outcomes;
  std::map<std::string, uint64_t> forgiven;                ///< reasons
  std::set<std::string> refusals, steps, layouts;          ///< kinds of messages; as in TrialResult
  std::vector<std::pair<uint64_t, std::string>> failures;  ///< item, and why
  uint64_t trials = 0;
  double seconds = 0;

  /// A trial that came to its end.
  void add(uint64_t item, const TrialResult& result);
  /// One that did not.
  void add_crash(uint64_t item, const std::string& why);
  /// Another slice: counts are added up, kinds united. `next` becomes that of `other`.
  void merge(const Tally& other);
};

/// What differs between two messages of one kind is "_": names, numbers, lists.
std::string kind_of(const std::string& message);

/// A tally as text, a line for each count, failure and kind; tallies of slices can be added up from files.
/// The file is complete or as it was before.
void write_tally(const Tally& tally, const std::string& path);
Tally read_tally(const std::string& path);

}  // namespace halftone::hostile
