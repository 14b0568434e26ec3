#include "tune/autoquant/budget_search.h"

#include <algorithm>
#include <chrono>

namespace halftone::aq {
namespace {

// A scheme that gains less of a group's time than this is not worth its loss of accuracy.
constexpr double kMinGain = 0.015;
constexpr int kMaxTrials = 10;
// Groups that are not asked by then have the mean harm of the others.
constexpr std::chrono::seconds kMaxHarmTime(6);
// The prediction aims a little below the limit, and is content with this much of it.
constexpr double kFirstAim = 0.95;
constexpr double kNearLimit = 0.75;
constexpr double kLowerAim = 0.85;

class BudgetSearch {
 public:
  BudgetSearch(const PlanInput& input, const GroupCosts& costs, Judge& judge,
               const std::function<bool()>& is_late)
      : input_(input), costs_(costs), judge_(judge), is_late_(is_late) {
    for (std::vector<Option>& options : options_of(costs))
      problem_.frontiers.push_back(frontier(std::move(options), kMinGain));
  }

  BudgetResult run() {
    const Assignment fastest(problem_.frontiers.size(), 0);
    const SchemeOfGroup schemes = schemes_of(fastest);
    if (std::all_of(schemes.begin(), schemes.end(), [](size_t scheme) { return scheme == 0; })) return {};
    const auto first = judge_.judge("plan", schemes);
    if (first->holds) {
      result_.plans.push_back(first);
    } else {
      fit(fastest, *first);
    }
    finish();
    return std::move(result_);
  }

 private:
  double limit() const { return 1 - input_.options.min_cosine; }

  SchemeOfGroup schemes_of(const Assignment& steps) const {
    SchemeOfGroup schemes;
    for (size_t g = 0; g < steps.size(); ++g) schemes.push_back(problem_.frontiers[g][steps[g]].scheme);
    return schemes;
  }

  void estimate_harm() {
    double sum = 0;
    size_t known = 0;
    std::vector<bool> asked(problem_.frontiers.size(), false);
    problem_.harm.assign(problem_.frontiers.size(), 0);
    const auto end = std::chrono::steady_clock::now() + kMaxHarmTime;
    for (size_t g = 0; g < problem_.frontiers.size(); ++g) {
      const Option& fastest = problem_.frontiers[g].front();
      asked[g] = fastest.error <= 0;
      if (asked[g] || is_late_() || std::chrono::steady_clock::now() > end) continue;
      problem_.harm[g] = judge_.harm_alone(g, fastest.scheme) / fastest.error;
      sum += problem_.harm[g];
      ++known;
      asked[g] = true;
    }
    for (size_t g = 0; g < asked.size(); ++g) {
      if (!asked[g]) problem_.harm[g] = known > 0 ? sum / static_cast<double>(known) : 1;
    }
  }

  /// Harms in proportion, so that what was predicted for `steps` is what was found.
  void correct(const Assignment& steps, const PlanCandidate& found) {
    const double predicted = predicted_error(problem_, steps), real = std::max(1 - found.cosine, 1e-12);
    if (!(predicted > 0) || !found.note.empty()) return;
    for (double& harm : problem_.harm) harm *= real / predicted;
  }

  void fit(const Assignment& fastest, const PlanCandidate& first) {
    estimate_harm();
    correct(fastest, first);
    double aim = kFirstAim;
    for (int trial = 0; trial < kMaxTrials; ++trial) {
      if (is_late_()) {
        result_.complete = false;
        return;
      }
      const Assignment steps = relax_budget(problem_, aim * limit(), RelaxOrder::kMostForTheTime);
      if (std::find(tried_.begin(), tried_.end(), steps) != tried_.end()) {
        if (!result_.plans.empty()) break;
        aim *= kLowerAim;
        continue;
      }
      tried_.push_back(steps);
      const SchemeOfGroup schemes = schemes_of(steps);
      if (std::all_of(schemes.begin(), schemes.end(), [](size_t scheme) { return scheme == 0; })) break;
      const auto candidate = judge_.judge("plan", schemes);
      correct(steps, *candidate);
      if (candidate->holds) {
        result_.plans.push_back(candidate);
        if (1 - candidate->cosine > kNearLimit * limit()) break;
      } else if (!candidate->note.empty()) {
        break;  // it cannot be built
      }
    }
    // Most harmful first is what people ask for; most for the time is faster where harms differ little.
    if (!result_.plans.empty() && !is_late_()) try_order(RelaxOrder::kMostHarmful, aim);
    result_.harm = problem_.harm;
  }

  void try_order(RelaxOrder other, double aim) {
    const SchemeOfGroup schemes = schemes_of(relax_budget(problem_, aim * limit(), other));
    const bool known = std::any_of(result_.plans.begin(), result_.plans.end(),
                                   [&](const auto& plan) { return plan->schemes == schemes; });
    if (known) return;
    const auto candidate = judge_.judge("plan, most harmful first", schemes);
    if (candidate->holds) result_.plans.push_back(candidate);
  }

  void finish() {
    std::stable_sort(result_.plans.begin(), result_.plans.end(), [&](const auto& a, const auto& b) {
      return predicted_ms(costs_, a->schemes) < predicted_ms(costs_, b->schemes);
    });
    if (result_.plans.empty()) return;
    for (size_t g = 0; g < problem_.frontiers.size(); ++g)
      result_.relaxed.push_back(result_.plans.front()->schemes[g] != problem_.frontiers[g].front().scheme);
  }

  const PlanInput& input_;
  const GroupCosts& costs_;
  Judge& judge_;
  const std::function<bool()>& is_late_;
  BudgetProblem problem_;
  std::vector<Assignment> tried_;
  BudgetResult result_;
};

}  // namespace

double predicted_ms(const GroupCosts& costs, const SchemeOfGroup& schemes) {
  double sum = 0;
  for (size_t g = 0; g < schemes.size(); ++g) sum += costs[g][schemes[g]].milliseconds.value_or(0);
  return sum;
}

BudgetResult search_budget(const PlanInput& input, const GroupCosts& costs, Judge& judge,
                           const std::function<bool()>& is_late) {
  return BudgetSearch(input, costs, judge, is_late).run();
}

}  // namespace halftone::aq
