#include "tune/autoquant/race.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace halftone::aq {
namespace {

constexpr double kRaceDropRatio = 1.08;
constexpr double kRaceConfidence = 0.004;
constexpr int kUsualRaceRounds = 12;
constexpr int kFewestRaceRounds = 6;
// Less is not worth a loss of accuracy.
constexpr double kRaceLeastGain = 0.99;
constexpr double kRaceLeastGainMs = 0.005;

struct RaceTotals {
  std::vector<double> ms;    ///< by variant, over the shapes
  std::vector<double> low;   ///< the least that it may be: by the interval of the ratio to fp32
  std::vector<double> high;  ///< the most
  std::vector<int> rounds;   ///< the fewest at a shape
  std::vector<bool> failed;
};

void run_shape(const PlanInput& input, const std::vector<std::shared_ptr<Variant>>& variants, size_t shape,
               MeasureOptions options, RaceTotals& totals) {
  std::vector<Contestant> contestants;
  double round_seconds = 0;
  for (const auto& variant : variants) {
    contestants.push_back(variant->entrant->contestant(input.layout.shape_calls[shape]));
    contestants.back().name = variant->name;
    round_seconds += 2 * variant->entrant->call_seconds();
  }
  contestants.front().always = true;
  options.least_rounds = static_cast<int>(std::clamp(options.seconds / std::max(round_seconds, 1e-9),
                                                     double{kFewestRaceRounds}, double{kUsualRaceRounds}));
  options.confidence = kRaceConfidence;
  options.drop_ratio = kRaceDropRatio;
  const Measurements measured = measure(contestants, options);
  require_quiet(measured);
  const MeasuredTime& fp32 = measured.rows.front();
  const double weight = input.shape_weights[shape];
  for (size_t i = 0; i < variants.size(); ++i) {
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
  const std::string numbers = fmt::format("{:.3f} of fp32's time, {:.3f} to {:.3f} after {} rounds",
                                          run.relative, run.relative_low, run.relative_high, run.rounds);
  const double gain_ms = fp32_ms - run.milliseconds;
  if (run.rounds == 0) return "it could not be measured";
  if (!run.holds) return "it is not within the accuracy budget";
  if (run.relative >= 1) return fmt::format("it is not faster: {}", numbers);
  if (run.relative_high == 0) return fmt::format("it was not measured long enough: {} rounds", run.rounds);
  if (!(run.relative_high < 1)) return fmt::format("it is not surely faster: {}", numbers);
  if (run.relative >= kRaceLeastGain) return fmt::format("it gains less than 1 %: {}", numbers);
  if (gain_ms < kRaceLeastGainMs)
    return fmt::format(
        "it gains {:.1f} µs a call ({}), and less than {:.0f} µs are not worth a loss of accuracy",
        1e3 * gain_ms, numbers, 1e3 * kRaceLeastGainMs);
  if (layer_gain_ms < kRaceLeastGainMs / 2)
    return fmt::format("its layers by themselves gain nothing: that the whole is faster ({}) is chance",
                       numbers);
  return "";
}

}  // namespace

RaceResult race(const PlanInput& input, const std::vector<std::shared_ptr<Variant>>& variants,
                const std::vector<double>& layer_gain_ms, double seconds,
                const std::function<void(double share)>& progress) {
  const size_t shapes = input.layout.shape_calls.size();
  const std::vector<double> zeros(variants.size());
  RaceTotals totals{zeros, zeros, zeros, std::vector<int>(variants.size(), std::numeric_limits<int>::max()),
                    std::vector<bool>(variants.size())};
  for (size_t shape = 0; shape < shapes; ++shape) {
    MeasureOptions options;
    options.seconds = seconds / static_cast<double>(shapes);
    options.progress = [&](double share) {
      progress((static_cast<double>(shape) + share) / static_cast<double>(shapes));
    };
    run_shape(input, variants, shape, std::move(options), totals);
  }
  RaceResult result;
  for (size_t i = 0; i < variants.size(); ++i) {
    const double relative = totals.ms[0] > 0 ? totals.ms[i] / totals.ms[0] : 0;
    AutoquantRun run{variants[i]->name, totals.ms[i], relative, variants[i]->cosine, variants[i]->holds};
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
