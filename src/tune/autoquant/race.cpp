#include "tune/autoquant/race.h"

#include <algorithm>

namespace halftone::aq {
namespace {

constexpr double kRaceDropRatio = 1.08;
constexpr double kRaceConfidence = 0.004;
constexpr int kUsualRaceRounds = 12;
constexpr int kFewestRaceRounds = 4;
// Less is not worth a loss of accuracy.
constexpr double kRaceLeastGain = 0.99;
constexpr double kRaceLeastGainMs = 0.005;

struct RaceTotals {
  std::vector<double> ms;    ///< by variant, over the shapes
  std::vector<double> high;  ///< the most that the time relative to fp32 may be, over the shapes
  std::vector<bool> failed;
};

Interval paired_interval(const MeasuredTime& a, const MeasuredTime& b, double level) {
  std::vector<double> ratios(std::min(a.times.size(), b.times.size()));
  for (size_t i = 0; i < ratios.size(); ++i) ratios[i] = a.times[i] / b.times[i];
  return ratios.empty() ? Interval{} : median_interval(std::move(ratios), level);
}

void run_shape(const PlanInput& input, const std::vector<std::shared_ptr<Variant>>& variants, size_t shape,
               MeasureOptions options, RaceTotals& totals) {
  std::vector<Contestant> contestants;
  double round_seconds = 0;
  for (const auto& variant : variants) {
    contestants.push_back(variant->entrant->contestant(input.layout.shape_calls[shape]));
    contestants.back().name = variant->name;
    round_seconds += 2 * variant->entrant->call_seconds();
  }
  contestants.front().keep = true;
  options.least_rounds = static_cast<int>(std::clamp(options.seconds / std::max(round_seconds, 1e-9),
                                                     double{kFewestRaceRounds}, double{kUsualRaceRounds}));
  options.confidence = kRaceConfidence;
  options.drop_ratio = kRaceDropRatio;
  const Measurements measured = measure(contestants, options);
  const MeasuredTime& fp32 = measured.rows.front();
  const double weight = input.shape_weights[shape];
  for (size_t i = 0; i < variants.size(); ++i) {
    const MeasuredTime& row = measured.rows[i];
    if (row.failed || row.times.empty() || fp32.times.empty()) {
      totals.failed[i] = true;
      continue;
    }
    totals.ms[i] += weight * fp32.median * paired_ratio(row, fp32);
    totals.high[i] += weight * fp32.median * paired_interval(row, fp32, options.level).high;
  }
}

}  // namespace

RaceResult race(const PlanInput& input, const std::vector<std::shared_ptr<Variant>>& variants,
                const std::vector<double>& layer_gain_ms, double seconds,
                const std::function<void(double share)>& progress) {
  const size_t shapes = input.layout.shape_calls.size();
  RaceTotals totals{std::vector<double>(variants.size()), std::vector<double>(variants.size()),
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
    result.runs.push_back(
        {variants[i]->name, totals.ms[i], relative, variants[i]->cosine, variants[i]->holds, false});
    const bool beats_fp32 = relative < kRaceLeastGain && totals.ms[0] - totals.ms[i] >= kRaceLeastGainMs &&
                            totals.high[i] < totals.ms[0] && layer_gain_ms[i] >= kRaceLeastGainMs / 2;
    if (i > 0 && !totals.failed[i] && variants[i]->holds && beats_fp32 &&
        totals.ms[i] < result.runs[result.winner].milliseconds)
      result.winner = i;
  }
  result.runs[result.winner].chosen = true;
  return result;
}

}  // namespace halftone::aq
