#include "tune/autoquant/final_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "halftone/cli/message.h"

namespace halftone::aq {
namespace {

constexpr double kFinalDropRatio = 1.08;
constexpr double kFinalConfidence = 0.004;
constexpr int kUsualRaceRounds = 12;
constexpr int kFewestRaceRounds = 6;
// Less is not worth a loss of accuracy.
constexpr double kFinalMinGain = 0.99;
constexpr double kFinalMinGainMs = 0.005;

struct FinalTotals {
  std::vector<double> ms;    ///< by candidate, over the shapes
  std::vector<double> low;   ///< the least that it may be: by the interval of the ratio to fp32
  std::vector<double> high;  ///< the most
  std::vector<int> rounds;   ///< the fewest at a shape
  std::vector<bool> failed;
};

void run_shape(const PlanInput& input, const std::vector<std::shared_ptr<PlanCandidate>>& candidates,
               size_t shape, MeasureOptions options, FinalTotals& totals) {
  std::vector<TimedCandidate> timed_candidates;
  double round_seconds = 0;
  for (const auto& candidate : candidates) {
    timed_candidates.push_back(candidate->run->timed_candidate(input.layout.shape_calls[shape]));
    timed_candidates.back().name = candidate->name;
    round_seconds += 2 * candidate->run->call_seconds();
  }
  timed_candidates.front().always = true;
  options.min_rounds = static_cast<int>(std::clamp(options.seconds / std::max(round_seconds, 1e-9),
                                                   double{kFewestRaceRounds}, double{kUsualRaceRounds}));
  options.confidence = kFinalConfidence;
  options.drop_ratio = kFinalDropRatio;
  const Measurements measured = measure(timed_candidates, options);
  require_quiet(measured);
  const MeasuredTime& fp32 = measured.rows.front();
  const double weight = input.shape_weights[shape];
  for (size_t i = 0; i < candidates.size(); ++i) {
    const MeasuredTime& row = measured.rows[i];
    if (row.failed || row.times.empty() || fp32.times.empty()) {
      totals.failed[i] = true;
      continue;
    }
    totals.ms[i] += weight * fp32.median * paired_ratio(row, fp32);
    const Interval interval = i == 0 ? Interval{1, 1} : paired_interval(row, fp32, options.level);
    totals.low[i] += weight * fp32.median * interval.low;
    totals.high[i] += weight * fp32.median * interval.high;
    totals.rounds[i] = std::min(totals.rounds[i], static_cast<int>(row.times.size()));
  }
}

/// Why fp32 is kept before `run`; empty: it is not.
std::string why_lost(const AutoquantRun& run, double fp32_ms, double layer_gain_ms) {
  const std::string numbers = fmt::format("{:.3f} of fp32's time, {:.3f} to {:.3f} after {}", run.relative,
                                          run.relative_low, run.relative_high, counted(run.rounds, "round"));
  const double gain_ms = fp32_ms - run.milliseconds;
  if (run.rounds == 0) return "it could not be measured";
  if (!run.holds) return "it is not within the accuracy budget";
  if (run.relative >= 1) return fmt::format("it is not faster: {}", numbers);
  if (run.relative_high == 0)
    return fmt::format("it was not measured long enough: {}", counted(run.rounds, "round"));
  if (!(run.relative_high < 1)) return fmt::format("it is not surely faster: {}", numbers);
  if (run.relative >= kFinalMinGain) return fmt::format("it gains less than 1 %: {}", numbers);
  if (gain_ms < kFinalMinGainMs)
    return fmt::format(
        "it gains {:.1f} µs a call ({}), and less than {:.0f} µs are not worth a loss of accuracy",
        1e3 * gain_ms, numbers, 1e3 * kFinalMinGainMs);
  if (layer_gain_ms < kFinalMinGainMs / 2)
    return fmt::format("its layers by themselves gain nothing: that the whole is faster ({}) is chance",
                       numbers);
  return "";
}

}  // namespace

FinalComparison final_comparison(const PlanInput& input,
                                 const std::vector<std::shared_ptr<PlanCandidate>>& candidates,
                                 const std::vector<double>& layer_gain_ms, double seconds,
                                 const std::function<void(double share)>& progress) {
  const size_t shapes = input.layout.shape_calls.size();
  const std::vector<double> zeros(candidates.size());
  FinalTotals totals{zeros, zeros, zeros,
                     std::vector<int>(candidates.size(), std::numeric_limits<int>::max()),
                     std::vector<bool>(candidates.size())};
  for (size_t shape = 0; shape < shapes; ++shape) {
    MeasureOptions options;
    options.seconds = seconds / static_cast<double>(shapes);
    options.progress = [&](double share) {
      progress((static_cast<double>(shape) + share) / static_cast<double>(shapes));
    };
    run_shape(input, candidates, shape, std::move(options), totals);
  }
  FinalComparison result;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const double relative = totals.ms[0] > 0 ? totals.ms[i] / totals.ms[0] : 0;
    AutoquantRun run{candidates[i]->name, totals.ms[i], relative, candidates[i]->cosine,
                     candidates[i]->holds};
    if (totals.ms[0] > 0 && !totals.failed[i]) run.rounds = totals.rounds[i];
    if (run.rounds > 0 && std::isfinite(totals.high[i])) {
      run.relative_low = totals.low[i] / totals.ms[0];
      run.relative_high = totals.high[i] / totals.ms[0];
    }
    result.runs.push_back(run);
    result.why_lost.push_back(i == 0 ? "" : why_lost(run, totals.ms[0], layer_gain_ms[i]));
    if (i > 0 && result.why_lost.back().empty() && run.milliseconds < result.runs[result.winner].milliseconds)
      result.winner = i;
  }
  result.runs[result.winner].chosen = true;
  return result;
}

}  // namespace halftone::aq
