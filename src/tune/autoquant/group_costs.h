// The measured time and error of each scheme for each group.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tune/autoquant/planner.h"
#include "tune/autoquant/relax_budget.h"
#include "tune/autoquant/time_cache.h"

namespace halftone::aq {

/// Of a group and a scheme.
struct GroupCost {
  std::optional<double> milliseconds;         ///< in one call of the model, the mean over calls
  std::vector<std::optional<double>> errors;  ///< of each of its layers
  std::string note;                           ///< why it may not be chosen
  bool allowed() const { return note.empty() && milliseconds.has_value(); }
  double worst_error() const;
};

/// By group and scheme.
using GroupCosts = std::vector<std::vector<GroupCost>>;

/// How far, 0 to 1, and with what.
using CostProgress = std::function<void(double share, std::string_view what)>;

struct CostReport {
  GroupCosts costs;
  size_t problems = 0;  ///< different ones
  size_t measured = 0;  ///< of them; the others were in the cache
  bool complete = true;
};

/// `seconds`: for all measurements together.
CostReport measure_costs(const PlanInput& input, const std::vector<AutoquantScheme>& schemes, double seconds,
                         const CostProgress& progress);

/// The options of each group that may be chosen, fp32 among them.
std::vector<std::vector<Option>> options_of(const GroupCosts& costs);

}  // namespace halftone::aq
