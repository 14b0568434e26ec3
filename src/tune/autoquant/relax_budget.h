// The scheme of each group: the fastest, except for groups that are given back to meet an accuracy budget.
#pragma once

#include <cstddef>
#include <vector>

namespace halftone::aq {

/// A scheme that a group may have.
struct Option {
  size_t scheme = 0;        ///< index among the planner's; 0 is fp32
  double milliseconds = 0;  ///< of all calls of the group in one call of the model
  double error = 0;         ///< of the group's worst layer, 1 - cosine
};

/// Options that are worth having, the fastest first; each one behind it is slower and has a smaller error.
/// What gains less than `min_gain` (0.015: 1.5 %) of the time over one with a smaller error is left out.
/// Never empty: `options` has fp32.
std::vector<Option> frontier(std::vector<Option> options, double min_gain);

/// A step for each group: which of its frontier.
using Assignment = std::vector<size_t>;

/// `harm`: for each group, what its error is multiplied by to give its share of the model's (noise powers
/// add: so do 1 - cosine, while they are small).
struct BudgetProblem {
  std::vector<std::vector<Option>> frontiers;
  std::vector<double> harm;
};
double predicted_error(const BudgetProblem& problem, const Assignment& steps);
double predicted_time(const BudgetProblem& problem, const Assignment& steps);

enum class RelaxOrder {
  kMostHarmful,    ///< the group that harms most goes one step back
  kMostForTheTime  ///< the step that takes most harm away for the time it costs
};
/// From the fastest on, steps are given back until the prediction is `limit` or less, or all is fp32. Then
/// steps that were given back and turn out not to be needed are taken again, most time first.
Assignment relax_budget(const BudgetProblem& problem, double limit, RelaxOrder order);

}  // namespace halftone::aq
