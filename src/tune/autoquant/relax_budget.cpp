#include "tune/autoquant/relax_budget.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace halftone::aq {
namespace {

const Option& chosen_option(const BudgetProblem& problem, const Assignment& steps, size_t group) {
  return problem.frontiers[group][steps[group]];
}

double harm_of(const BudgetProblem& problem, const Assignment& steps, size_t group) {
  return problem.harm[group] * chosen_option(problem, steps, group).error;
}

/// What going one step back takes away from the error, for the time it costs.
double worth_of_step(const BudgetProblem& problem, const Assignment& steps, size_t group) {
  const Option& now = chosen_option(problem, steps, group);
  const Option& next = problem.frontiers[group][steps[group] + 1];
  const double cost = std::max(next.milliseconds - now.milliseconds, 1e-12);
  return problem.harm[group] * (now.error - next.error) / cost;
}

std::optional<size_t> next_to_relax(const BudgetProblem& problem, const Assignment& steps, RelaxOrder order) {
  std::optional<size_t> best;
  double most = -1;
  for (size_t g = 0; g < steps.size(); ++g) {
    if (steps[g] + 1 >= problem.frontiers[g].size()) continue;
    const double value =
        order == RelaxOrder::kMostHarmful ? harm_of(problem, steps, g) : worth_of_step(problem, steps, g);
    if (value > most) {
      most = value;
      best = g;
    }
  }
  return best;
}

void take_again(const BudgetProblem& problem, double limit, Assignment& steps) {
  while (true) {
    std::optional<size_t> best;
    double most = 0;
    for (size_t g = 0; g < steps.size(); ++g) {
      if (steps[g] == 0) continue;
      Assignment trial = steps;
      --trial[g];
      const double gain = predicted_time(problem, steps) - predicted_time(problem, trial);
      if (gain > most && predicted_error(problem, trial) <= limit) {
        most = gain;
        best = g;
      }
    }
    if (!best) return;
    --steps[*best];
  }
}

}  // namespace

std::vector<Option> frontier(std::vector<Option> options, double min_gain) {
  std::stable_sort(options.begin(), options.end(), [](const Option& a, const Option& b) {
    return a.milliseconds != b.milliseconds ? a.milliseconds < b.milliseconds : a.error < b.error;
  });
  std::vector<Option> kept;
  // From the slowest on, so that each is compared with what is more exact.
  for (auto option = options.rbegin(); option != options.rend(); ++option) {
    while (!kept.empty() && kept.back().error >= option->error) kept.pop_back();
    if (!kept.empty() && option->milliseconds > (1 - min_gain) * kept.back().milliseconds) continue;
    kept.push_back(*option);
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

double predicted_error(const BudgetProblem& problem, const Assignment& steps) {
  double sum = 0;
  for (size_t g = 0; g < steps.size(); ++g) sum += harm_of(problem, steps, g);
  return sum;
}

double predicted_time(const BudgetProblem& problem, const Assignment& steps) {
  double sum = 0;
  for (size_t g = 0; g < steps.size(); ++g) sum += chosen_option(problem, steps, g).milliseconds;
  return sum;
}

Assignment relax_budget(const BudgetProblem& problem, double limit, RelaxOrder order) {
  Assignment steps(problem.frontiers.size(), 0);
  while (predicted_error(problem, steps) > limit) {
    const auto group = next_to_relax(problem, steps, order);
    if (!group) break;
    ++steps[*group];
  }
  take_again(problem, limit, steps);
  return steps;
}

}  // namespace halftone::aq
