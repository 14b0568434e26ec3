// The plan as people read it: every layer with what was measured, the choice and its reason.
#pragma once

#include <string>
#include <vector>

#include "tune/autoquant/budget_search.h"
#include "tune/autoquant/group_costs.h"

namespace halftone::aq {

/// What came out of the final comparison, or of the budget if there was none.
struct Decision {
  SchemeOfGroup chosen;
  std::string winner;           ///< the candidate's name
  bool quantized_lost = false;  ///< fp32 won against quantized ones
  std::string why_lost;         ///< then: what the best of those lacked
  bool complete = true;         ///< false: the time limit left something out
};

/// Fills in layers and notes.
void write_decision(AutoquantPlan& plan, const PlanInput& input, const std::vector<AutoquantScheme>& schemes,
                    const CostReport& costs, const BudgetResult& budget, const Decision& decision);

}  // namespace halftone::aq
