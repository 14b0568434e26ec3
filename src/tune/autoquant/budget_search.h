// Finds plans that hold the accuracy budget of the whole model.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tune/autoquant/group_costs.h"
#include "tune/autoquant/plan_candidate.h"

namespace halftone::aq {

struct BudgetResult {
  /// Built, and known to hold the budget; the one with the least predicted time first. Empty: only fp32
  /// holds, or no group gains anything.
  std::vector<std::shared_ptr<PlanCandidate>> plans;
  std::vector<bool> relaxed;  ///< by group, in the first plan
  std::vector<double> harm;   ///< by group: what its error does to the model's; empty: was not needed
  bool complete = true;       ///< false: the time limit ended the search
};

/// 1. The fastest allowed scheme of each group. If that holds, it is the plan.
/// 2. The harm that each group does alone, from one run of the model each, scaled by the errors of its other
///    schemes.
/// 3. Groups are given back until the sum of harms fits the budget, the model is built and validated, the
///    sum is corrected by what was found, and so on.
BudgetResult search_budget(const PlanInput& input, const GroupCosts& costs, Judge& judge,
                           const std::function<bool()>& is_late);

double predicted_ms(const GroupCosts& costs, const SchemeOfGroup& schemes);

}  // namespace halftone::aq
