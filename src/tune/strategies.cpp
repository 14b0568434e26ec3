// The strategies of tune(): how a candidate is chosen from the measurements.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/errors.h"
#include "base/nearest.h"
#include "halftone/tune/tune.h"

namespace halftone {
namespace {

/// The valid candidate with the smallest value of `cost` among those that `allowed` takes.
template <typename Allowed, typename Cost>
std::optional<size_t> cheapest(const std::vector<CandidateReport>& candidates, Allowed allowed, Cost cost) {
  std::optional<size_t> best;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].verdict != Verdict::kValid || candidates[i].times.empty() || !allowed(candidates[i]))
      continue;
    if (!best || cost(candidates[i]) < cost(candidates[*best])) best = i;
  }
  return best;
}

bool anyone(const CandidateReport& candidate) {
  return true;
}

double latency(const CandidateReport& candidate) {
  return candidate.latency_ms;
}

double slowness(const CandidateReport& candidate) {
  return -candidate.throughput;
}

auto within(double ms) {
  return [ms](const CandidateReport& candidate) {
    return std::all_of(candidate.times.begin(), candidate.times.end(),
                       [ms](const ShapeTime& time) { return time.median <= ms; });
  };
}

void check_limit(double limit, std::string_view what) {
  if (!(limit > 0)) fail(ErrorCode::kInvalidArgument, "{}: needs a limit above 0, not {}", what, limit);
}

double wanted(std::optional<double> number, std::string_view strategy, std::string_view what) {
  if (!number) fail(ErrorCode::kInvalidArgument, "strategy \"{}\" needs {}", strategy, what);
  return *number;
}

}  // namespace

Strategy max_throughput() {
  Strategy strategy;
  strategy.name = "throughput";
  strategy.choose = [](const auto& candidates) { return cheapest(candidates, anyone, slowness); };
  return strategy;
}

Strategy min_latency() {
  Strategy strategy;
  strategy.name = "latency";
  strategy.choose = [](const auto& candidates) { return cheapest(candidates, anyone, latency); };
  return strategy;
}

Strategy first_win() {
  Strategy strategy;
  strategy.name = "first";
  strategy.stop_at_first = true;
  strategy.choose = [](const std::vector<CandidateReport>& candidates) -> std::optional<size_t> {
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (candidates[i].verdict == Verdict::kValid && !candidates[i].is_eager && !candidates[i].is_fp32)
        return i;
    }
    return std::nullopt;
  };
  return strategy;
}

Strategy one_backend(std::string candidate) {
  Strategy strategy;
  strategy.name = fmt::format("one ({})", candidate);
  strategy.only = candidate;
  strategy.choose = [candidate = std::move(candidate)](const auto& candidates) {
    return cheapest(
        candidates, [&](const CandidateReport& each) { return each.name == candidate; }, latency);
  };
  return strategy;
}

Strategy latency_budget(double ms) {
  check_limit(ms, "latency budget");
  Strategy strategy;
  strategy.name = fmt::format("latency-budget ({} ms)", ms);
  strategy.choose = [ms](const auto& candidates) { return cheapest(candidates, within(ms), slowness); };
  return strategy;
}

Strategy accuracy_budget(double minimum) {
  Strategy strategy;
  strategy.name = fmt::format("accuracy (cosine {})", minimum);
  strategy.min_cosine = minimum;
  strategy.choose = [](const auto& candidates) { return cheapest(candidates, anyone, latency); };
  return strategy;
}

Strategy metric_budget(double minimum) {
  Strategy strategy;
  strategy.name = fmt::format("metric ({})", minimum);
  strategy.choose = [minimum](const auto& candidates) {
    return cheapest(
        candidates,
        [minimum](const CandidateReport& each) {
          return each.accuracy && each.accuracy->metric && *each.accuracy->metric >= minimum;
        },
        latency);
  };
  return strategy;
}

Strategy smallest_size(double ms) {
  check_limit(ms, "smallest size");
  Strategy strategy;
  strategy.name = fmt::format("size ({} ms)", ms);
  strategy.beat_fp32 = false;
  strategy.choose = [ms](const auto& candidates) {
    return cheapest(candidates, within(ms),
                    [](const CandidateReport& each) { return std::pair(each.bytes, each.latency_ms); });
  };
  return strategy;
}

std::vector<std::string> strategy_names() {
  return {"throughput", "latency", "first", "one", "latency-budget", "accuracy", "metric", "size"};
}

Strategy strategy_by_name(std::string_view name, const StrategyNumbers& numbers) {
  if (name == "throughput") return max_throughput();
  if (name == "latency") return min_latency();
  if (name == "first") return first_win();
  if (name == "one") {
    if (numbers.candidate.empty())
      fail(ErrorCode::kInvalidArgument, "strategy \"one\" needs the name of a candidate");
    return one_backend(numbers.candidate);
  }
  if (name == "latency-budget")
    return latency_budget(wanted(numbers.budget_ms, name, "a budget in milliseconds"));
  if (name == "accuracy") return accuracy_budget(wanted(numbers.minimum, name, "the least cosine"));
  if (name == "metric") return metric_budget(wanted(numbers.minimum, name, "the least value of the metric"));
  if (name == "size") return smallest_size(wanted(numbers.budget_ms, name, "a limit in milliseconds"));
  fail(ErrorCode::kInvalidArgument, "there is no strategy \"{}\"{}", name,
       did_you_mean(name, strategy_names()));
}

}  // namespace halftone
