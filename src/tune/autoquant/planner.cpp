#include "tune/autoquant/planner.h"

#include <algorithm>
#include <map>

#include "base/log.h"
#include "tune/autoquant/budget_search.h"
#include "tune/autoquant/final_comparison.h"
#include "tune/autoquant/group_costs.h"
#include "tune/autoquant/plan_writer.h"

namespace halftone::aq {
namespace {

// Of the time limit. Measuring problems also has an end of its own: more seconds would not change a choice.
constexpr double kCostShare = 0.25;
constexpr double kMaxCostSeconds = 8;
constexpr double kBudgetEnd = 0.75;
constexpr double kMaxFinalSeconds = 6;
// Single schemes that are predicted this near to the best plan run against it.
constexpr double kNearThePlan = 1.12;
constexpr size_t kMaxSingles = 4;
constexpr int64_t kProgressSteps = 1000;

class Planner {
 public:
  explicit Planner(const PlanInput& input) : input_(input), schemes_(schemes_to_try(input.options)) {}

  PlanResult run() {
    Judge judge(input_, schemes_);  // before all measuring: it refuses models that draw random numbers
    const double seconds = std::min(kMaxCostSeconds, kCostShare * input_.options.time_limit);
    costs_ = measure_costs(input_, schemes_, seconds,
                           [&](double share, std::string_view what) { progress(0.5 * share, what); });
    progress(0.5, "the accuracy budget");
    const std::function<bool()> is_late = [&] {
      return remaining() < (1 - kBudgetEnd) * input_.options.time_limit;
    };
    budget_ = search_budget(input_, costs_.costs, judge, is_late);
    std::vector<std::shared_ptr<PlanCandidate>> candidates = {
        judge.judge("fp32", SchemeOfGroup(groups(), 0))};
    candidates.insert(candidates.end(), budget_.plans.begin(), budget_.plans.end());
    decide(judge, std::move(candidates), is_late);
    plan_.min_cosine = input_.options.min_cosine;
    plan_.min_layer_cosine = input_.options.min_layer_cosine;
    write_decision(plan_, input_, schemes_, costs_, budget_, decision_);
    progress(1, "done");
    return {std::move(plan_), costs_.complete && budget_.complete && decision_.complete};
  }

 private:
  size_t groups() const { return input_.model.groups.size(); }
  double remaining() const {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - input_.start;
    return input_.options.time_limit - spent.count();
  }
  void progress(double done, std::string_view what) const {
    if (!input_.options.progress) return;
    input_.options.progress(static_cast<int64_t>(done * kProgressSteps), kProgressSteps, what);
  }

  double predicted(const SchemeOfGroup& schemes) const { return predicted_ms(costs_.costs, schemes); }

  /// Every group in one scheme, as far as it may have it.
  SchemeOfGroup single(size_t scheme) const {
    SchemeOfGroup schemes(groups(), 0);
    for (size_t g = 0; g < groups(); ++g) {
      if (costs_.costs[g][scheme].allowed()) schemes[g] = scheme;
    }
    return schemes;
  }

  void add_singles(Judge& judge, std::vector<std::shared_ptr<PlanCandidate>>& candidates,
                   const std::function<bool()>& is_late) {
    const SchemeOfGroup plain(groups(), 0);
    double best = predicted(plain);
    for (const auto& plan : budget_.plans) best = std::min(best, predicted(plan->schemes));
    std::vector<size_t> near;
    for (size_t s = 1; s < schemes_.size(); ++s) {
      const SchemeOfGroup schemes = single(s);
      const bool known = std::any_of(candidates.begin(), candidates.end(),
                                     [&](const auto& candidate) { return candidate->schemes == schemes; });
      if (!known && predicted(schemes) <= kNearThePlan * best) near.push_back(s);
    }
    std::stable_sort(near.begin(), near.end(),
                     [&](size_t a, size_t b) { return predicted(single(a)) < predicted(single(b)); });
    for (size_t i = 0; i < std::min(near.size(), kMaxSingles); ++i) {
      if (is_late()) {
        decision_.complete = false;
        return;
      }
      const auto candidate = judge.judge("all " + schemes_[near[i]].name, single(near[i]));
      if (candidate->holds) candidates.push_back(candidate);
    }
  }

  /// What is compared, and what was expected of it.
  void log_candidate(const PlanCandidate& candidate) const {
    std::map<std::string, size_t> counts;
    for (const size_t scheme : candidate.schemes) ++counts[schemes_[scheme].name];
    std::string text;
    for (const auto& [name, count] : counts)
      text += fmt::format(", {} group{} {}", count, count == 1 ? "" : "s", name);
    log(LogLevel::kDebug, "autoquant: {}: {:.3f} ms predicted for its layers, cosine {:.5f}{}",
        candidate.name, predicted(candidate.schemes), candidate.cosine, text);
  }

  /// Of the best of those that lost to fp32.
  static std::string describe_loss(const FinalComparison& result) {
    size_t best = 0;
    for (size_t i = 1; i < result.runs.size(); ++i) {
      const AutoquantRun& run = result.runs[i];
      if (run.rounds > 0 && (best == 0 || run.milliseconds < result.runs[best].milliseconds)) best = i;
    }
    return best == 0 ? ""
                     : fmt::format("of \"{}\", the best: {}", result.runs[best].name, result.why_lost[best]);
  }

  void decide(Judge& judge, std::vector<std::shared_ptr<PlanCandidate>> candidates,
              const std::function<bool()>& is_late) {
    if (input_.options.final_comparison) add_singles(judge, candidates, is_late);
    size_t winner = candidates.size() > 1 ? 1 : 0;
    log(LogLevel::kDebug, "autoquant: plans within the budget after {:.1f} s",
        input_.options.time_limit - remaining());
    for (const auto& candidate : candidates) log_candidate(*candidate);
    if (input_.options.final_comparison && candidates.size() > 1) {
      judge.keep_only(candidates);
      const double seconds = std::clamp(0.8 * remaining(), 0.2, kMaxFinalSeconds);
      std::vector<double> layer_gain_ms;
      for (const auto& candidate : candidates)
        layer_gain_ms.push_back(predicted(candidates.front()->schemes) - predicted(candidate->schemes));
      const FinalComparison result =
          final_comparison(input_, candidates, layer_gain_ms, seconds,
                           [&](double share) { progress(0.75 + 0.25 * share, "the whole model"); });
      plan_.runs = result.runs;
      winner = result.winner;
      if (winner == 0) decision_.why_lost = describe_loss(result);
    }
    decision_.chosen = candidates[winner]->schemes;
    decision_.winner = candidates[winner]->name;
    decision_.quantized_lost = winner == 0 && candidates.size() > 1;
    plan_.cosine = candidates[winner]->cosine;
  }

  const PlanInput& input_;
  std::vector<AutoquantScheme> schemes_;
  CostReport costs_;
  BudgetResult budget_;
  Decision decision_;
  AutoquantPlan plan_;
};

}  // namespace

std::vector<AutoquantScheme> schemes_to_try(const AutoquantOptions& options) {
  std::vector<AutoquantScheme> schemes = {autoquant_scheme("fp32")};
  for (const std::string& name : options.schemes.empty() ? default_autoquant_schemes() : options.schemes) {
    const AutoquantScheme& scheme = autoquant_scheme(name);
    const bool known = std::any_of(schemes.begin(), schemes.end(),
                                   [&](const AutoquantScheme& each) { return each.name == scheme.name; });
    if (!known) schemes.push_back(scheme);
  }
  return schemes;
}

PlanResult make_plan(const PlanInput& input) {
  return Planner(input).run();
}

}  // namespace halftone::aq
