#include "tune/autoquant/group_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/log.h"
#include "halftone/quant/weight_format.h"
#include "tune/autoquant/layer_error.h"
#include "tune/autoquant/time_problem.h"
#include "tune/candidate_run.h"

namespace halftone::aq {
namespace {

constexpr double kShortestProblem = 0.12;  // seconds
constexpr double kLongestProblem = 1.5;
// Of the time limit: what has not begun by then is left out.
constexpr double kTimesEnd = 0.5;
constexpr double kErrorsEnd = 0.65;

/// A problem, and which groups run it how often in one call of the model.
struct SharedProblem {
  Problem problem;
  std::map<size_t, double> calls;  ///< by group
};

class CostMeasurer {
 public:
  CostMeasurer(const PlanInput& input, const std::vector<AutoquantScheme>& schemes,
               const CostProgress& progress)
      : input_(input),
        schemes_(schemes),
        progress_(progress),
        cache_(input.options.cache_dir, input.options.use_cache) {
    report_.costs.assign(input.model.groups.size(), std::vector<GroupCost>(schemes.size()));
  }

  CostReport run(double seconds) {
    find_refusals();
    find_problems();
    time_problems(seconds);
    cache_.save();
    const double timed = spent();
    drop_slower_than_fp32();
    measure_errors();
    log(LogLevel::kDebug,
        "autoquant: {} of {} problems measured, times known after {:.1f} s, errors after {:.1f} s",
        report_.measured, report_.problems, timed, spent());
    return std::move(report_);
  }

 private:
  double spent() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - input_.start).count();
  }
  bool is_late() const { return spent() > kTimesEnd * input_.options.time_limit; }

  GroupCost& cost(size_t group, size_t scheme) { return report_.costs[group][scheme]; }

  /// Sizes that a format does not take.
  void find_refusals() {
    for (size_t g = 0; g < input_.model.groups.size(); ++g) {
      for (size_t s = 0; s < schemes_.size(); ++s) {
        cost(g, s).errors.resize(input_.model.groups[g].layers.size());
        if (!schemes_[s].config) continue;
        const auto format = format_of(*schemes_[s].config);
        for (const size_t layer : input_.model.groups[g].layers) {
          const LayerInfo& info = input_.model.layers[layer].info;
          const std::string refusal = format->refuse(info.n, info.k);
          if (refusal.empty() || !cost(g, s).note.empty()) continue;
          cost(g, s).note = input_.model.groups[g].layers.size() > 1
                                ? fmt::format("refused: {}: {}", info.name, refusal)
                                : fmt::format("refused: {}", refusal);
        }
      }
    }
  }

  void note_all(size_t group, const std::string& note) {
    for (size_t s = 0; s < schemes_.size(); ++s) {
      if (cost(group, s).note.empty()) cost(group, s).note = note;
    }
  }

  void find_problems() {
    std::map<std::string, size_t> index;
    const auto total = static_cast<double>(std::max<int64_t>(1, input_.recorder.calls()));
    for (size_t g = 0; g < input_.model.groups.size(); ++g) {
      try {
        for (size_t site = 0; site < input_.model.groups[g].sites.size(); ++site) {
          for (const SiteShape& shape : input_.recorder.shapes(g, site)) {
            Problem problem = cut_out(input_.model, input_.recorder.neighbourhood(g, site), shape.seen);
            const auto [place, fresh] = index.emplace(problem.key, problems_.size());
            if (fresh) problems_.push_back({std::move(problem), {}});
            problems_[place->second].calls[g] += static_cast<double>(shape.calls) / total;
          }
        }
      } catch (const std::exception& error) {
        note_all(g, "not measured: " + short_message(error));
      }
    }
    report_.problems = problems_.size();
  }

  /// Schemes that one of the problem's groups may have: equal problems have equal refusals.
  std::vector<size_t> schemes_of(const SharedProblem& shared) {
    std::vector<size_t> wanted;
    for (size_t s = 0; s < schemes_.size(); ++s) {
      const bool any = std::any_of(shared.calls.begin(), shared.calls.end(),
                                   [&](const auto& entry) { return cost(entry.first, s).note.empty(); });
      if (any) wanted.push_back(s);
    }
    return wanted;
  }

  void time_problems(double seconds) {
    std::vector<size_t> unknown;
    for (size_t p = 0; p < problems_.size(); ++p) {
      if (!take_from_cache(problems_[p])) unknown.push_back(p);
    }
    // The larger ones first: where time runs out, they matter most.
    std::stable_sort(unknown.begin(), unknown.end(), [&](size_t a, size_t b) {
      return problems_[a].problem.weights > problems_[b].problem.weights;
    });
    for (size_t i = 0; i < unknown.size(); ++i) {
      SharedProblem& shared = problems_[unknown[i]];
      progress_(0.8 * static_cast<double>(i) / static_cast<double>(unknown.size()),
                shared.problem.key.substr(0, shared.problem.key.find(" on ")));
      if (is_late()) {
        report_.complete = false;
        for (const auto& [group, calls] : shared.calls) note_all(group, "not measured: the time limit");
        continue;
      }
      const double share =
          std::clamp(seconds / static_cast<double>(unknown.size()), kShortestProblem, kLongestProblem);
      time_one(shared, share);
      ++report_.measured;
    }
  }

  bool take_from_cache(SharedProblem& shared) {
    std::vector<std::pair<size_t, double>> known;
    for (const size_t s : schemes_of(shared)) {
      const auto ms = cache_.find(shared.problem.key, schemes_[s].name);
      if (!ms) return false;
      known.emplace_back(s, *ms);
    }
    for (const auto& [s, ms] : known) add_time(shared, s, ms);
    return true;
  }

  void add_time(const SharedProblem& shared, size_t scheme, double ms) {
    for (const auto& [group, calls] : shared.calls) {
      GroupCost& each = cost(group, scheme);
      each.milliseconds = each.milliseconds.value_or(0) + calls * ms;
    }
  }

  void time_one(SharedProblem& shared, double seconds) {
    const std::vector<size_t> wanted = schemes_of(shared);
    std::vector<AutoquantScheme> schemes;
    for (const size_t s : wanted) schemes.push_back(schemes_[s]);
    const int64_t beside = std::max<int64_t>(0, input_.model.weights - shared.problem.weights);
    const std::vector<SchemeTime> times = time_problem(shared.problem, schemes, beside, seconds);
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (times[i].milliseconds) {
        cache_.add(shared.problem.key, times[i].scheme, *times[i].milliseconds);
        add_time(shared, wanted[i], *times[i].milliseconds);
      } else {
        for (const auto& [group, calls] : shared.calls)
          cost(group, wanted[i]).note = "does not run: " + times[i].note;
      }
    }
  }

  /// What is slower than fp32 will not be chosen: its error is not worth the time.
  void drop_slower_than_fp32() {
    for (auto& group : report_.costs) {
      if (!group[0].allowed()) continue;
      for (size_t s = 1; s < group.size(); ++s) {
        if (group[s].allowed() && *group[s].milliseconds >= *group[0].milliseconds)
          group[s].note = "slower than fp32";
      }
    }
  }

  void measure_errors() {
    for (size_t g = 0; g < input_.model.groups.size(); ++g) {
      const std::vector<size_t>& layers = input_.model.groups[g].layers;
      progress_(0.8 + 0.2 * static_cast<double>(g) / static_cast<double>(input_.model.groups.size()),
                "errors of " + input_.model.layers[layers.front()].info.name);
      for (size_t s = 0; s < schemes_.size(); ++s) {
        if (s > 0 && cost(g, s).note.empty() && spent() > kErrorsEnd * input_.options.time_limit) {
          cost(g, s).note = "its error was not measured: the time limit";
          report_.complete = false;
        }
        // All layers of the group, though one that refuses is enough: people read them.
        const bool wanted = cost(g, s).note.empty();
        for (size_t i = 0; wanted && i < layers.size(); ++i)
          measure_error(cost(g, s), i, layers[i], schemes_[s]);
      }
    }
  }

  void measure_error(GroupCost& cost, size_t index, size_t layer, const AutoquantScheme& scheme) {
    if (!scheme.config) {
      cost.errors[index] = 0;
      return;
    }
    const GraphLayer& marked = input_.model.layers[layer];
    const LayerError found = layer_error(input_.model, input_.recorder, marked, *scheme.config);
    cost.errors[index] = found.error;
    const double least = input_.options.min_layer_cosine;
    if (!cost.note.empty()) return;
    if (!found.error) {
      cost.note = "refused: " + found.refusal;
    } else if (1 - *found.error < least) {
      cost.note = fmt::format("refused: {}cosine {:.4f}, less than {}",
                              cost.errors.size() > 1 ? marked.info.name + ": " : "", 1 - *found.error, least);
    }
  }

  const PlanInput& input_;
  const std::vector<AutoquantScheme>& schemes_;
  const CostProgress& progress_;
  TimeCache cache_;
  std::vector<SharedProblem> problems_;
  CostReport report_;
};

}  // namespace

double GroupCost::worst_error() const {
  double worst = 0;
  for (const auto& error : errors) worst = std::max(worst, error.value_or(0));
  return worst;
}

CostReport measure_costs(const PlanInput& input, const std::vector<AutoquantScheme>& schemes, double seconds,
                         const CostProgress& progress) {
  return CostMeasurer(input, schemes, progress).run(seconds);
}

std::vector<std::vector<Option>> options_of(const GroupCosts& costs) {
  std::vector<std::vector<Option>> all;
  for (const auto& group : costs) {
    std::vector<Option>& options = all.emplace_back();
    for (size_t s = 0; s < group.size(); ++s) {
      if (group[s].allowed()) options.push_back({s, *group[s].milliseconds, group[s].worst_error()});
    }
    // A group whose fp32 could not be measured stays fp32.
    const bool has_plain = !options.empty() && options.front().scheme == 0;
    if (!has_plain) options = {{0, 0, 0}};
  }
  return all;
}

}  // namespace halftone::aq
