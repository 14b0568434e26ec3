#include "tally.h"

#include <regex>

namespace halftone::hostile {
namespace {

using Outcome = TrialResult::Outcome;

/// What differs between two messages of one kind: numbers and names.
std::string kind_of(const std::string& message) {
  static const std::regex names(
      "\"[^\"]*\"|%[A-Za-z0-9_.]+|-?[0-9]+|\\[[^\\]]*\\]|[a-z_0-9]+::[A-Za-z0-9_.]+");
  return std::regex_replace(message.substr(0, 400), names, "_").substr(0, 160);
}

}  // namespace

void Tally::add(uint64_t item, const TrialResult& result) {
  ++trials;
  ++outcomes[result.outcome];
  steps.insert(result.steps.begin(), result.steps.end());
  layouts.insert(result.layouts.begin(), result.layouts.end());
  if (result.outcome == Outcome::kWrong) failures.emplace_back(item, result.detail);
  if (result.outcome == Outcome::kRefused || result.outcome == Outcome::kErrors ||
      result.outcome == Outcome::kCautious)
    refusals.insert(kind_of(result.detail));
}

void Tally::add_crash(uint64_t item, const std::string& why) {
  ++trials;
  failures.emplace_back(item, why);
}

}  // namespace halftone::hostile
