// The layers that a plan decides: those with an entry, and those that an entry decides together with its own.
#pragma once

#include <string>
#include <vector>

#include "halftone/tune/autoquant_plan.h"

namespace halftone {

struct PlanChoice {
  std::string layer;
  const AutoquantLayer* entry = nullptr;  ///< of the plan, which must outlive this
  bool own = true;                        ///< false: `layer` only stands in entry->together
};
/// In the plan's order. A layer's own entry is stronger than one that names it among `together`.
std::vector<PlanChoice> plan_choices(const AutoquantPlan& plan);

}  // namespace halftone
