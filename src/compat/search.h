// The search for execution parameters: which threads and which optional passes run a call fastest.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "halftone/compat/baseline_compile.h"

namespace halftone::baseline {

struct SearchSetting {
  int threads = 0;
  std::vector<std::string> without;  ///< passes, sorted
  bool operator==(const SearchSetting&) const = default;
};

struct SearchProblem {
  std::string shape;
  int threads = 1;                             ///< the most that a run may have
  std::vector<std::string> passes;             ///< those that may be left out
  std::shared_ptr<const CompiledGraph> start;  ///< all threads, all passes
  std::function<std::shared_ptr<const CompiledGraph>(const SearchSetting&)> make;
  std::function<void(const CompiledGraph&)> run;  ///< one call
  bool all_directions = false;
  std::function<double()> clock = nullptr;  ///< seconds; for tests. Empty: the steady clock
};

struct SearchResult {
  SearchReport report;
  std::shared_ptr<const CompiledGraph> model;
};

/// Coordinate descent: the values of one parameter comparison each other while the others stand still, then those
/// of the next, until a whole round changes nothing. With `all_directions` the winner then races every
/// combination that was not tried (kMaxCombinations at most). What is not clearly slower stays.
SearchResult search_parameters(const SearchProblem& problem);
inline constexpr size_t kMaxCombinations = 32;

}  // namespace halftone::baseline
