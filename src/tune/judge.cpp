#include "tune/judge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/errors.h"
#include "halftone/cli/message.h"

namespace halftone {
namespace {

/// 0 if one of the ratios is not known.
double mean_ratio(const std::vector<ShapeTime>& times, double ShapeTime::*ratio) {
  double sum = 0;
  for (const ShapeTime& time : times) {
    if (!(time.*ratio > 0)) return 0;
    sum += std::log(time.*ratio);
  }
  return times.empty() ? 0 : std::exp(sum / static_cast<double>(times.size()));
}

std::string why_wrong(const CandidateReport& candidate, double min_cosine) {
  if (!candidate.accuracy) return "it was not validated";
  const Accuracy& accuracy = *candidate.accuracy;
  if (accuracy.nans > 0)
    return fmt::format("{} element{} NaN or infinite where eager's are not, or the other way round",
                       accuracy.nans, accuracy.nans == 1 ? " is" : "s are");
  // Written so that a cosine that is not a number is too small.
  if (!(accuracy.min_cosine >= min_cosine))
    return fmt::format("cosine {:.5f} to eager, less than {}", accuracy.min_cosine, min_cosine);
  return "";
}

/// A baseline: its name, and how a time is compared with its own.
struct Beside {
  std::string_view name;
  double ShapeTime::*ratio;
  Interval ShapeTime::*interval;
};
constexpr Beside kBesideEager = {"eager", &ShapeTime::to_eager, &ShapeTime::eager_interval};
constexpr Beside kBesideFp32 = {"Halftone's fp32", &ShapeTime::to_fp32, &ShapeTime::fp32_interval};

/// Of the geometric mean over the shapes: between that of the lower and that of the upper ends.
Interval mean_interval(const std::vector<ShapeTime>& times, const Beside& beside) {
  double low = 0, high = 0;
  for (const ShapeTime& time : times) {
    low += std::log((time.*beside.interval).low);
    high += std::log((time.*beside.interval).high);
  }
  const auto count = static_cast<double>(times.size());
  return {std::exp(low / count), std::exp(high / count)};
}

int fewest_runs(const CandidateReport& candidate) {
  int fewest = std::numeric_limits<int>::max();
  for (const ShapeTime& time : candidate.times) fewest = std::min(fewest, time.runs);
  return fewest;
}

/// Only what an interval says is a verdict.
std::string why_open(const CandidateReport& candidate) {
  const bool open = std::any_of(candidate.times.begin(), candidate.times.end(), [](const ShapeTime& time) {
    return time.eager_interval.is_open() || time.fp32_interval.is_open();
  });
  if (!open) return "";
  const std::string why = candidate.stopped.empty() ? "" : "; " + candidate.stopped;
  return fmt::format("not measured long enough: {}{}", counted(fewest_runs(candidate), "round"), why);
}

std::string why_slow(const CandidateReport& candidate, const Beside& beside) {
  const double mean = mean_ratio(candidate.times, beside.ratio);
  if (mean == 0) return fmt::format("its time beside {} is not known", beside.name);
  const Interval interval = mean_interval(candidate.times, beside);
  if (mean >= 1)
    return fmt::format("not faster than {}: {:.2f} times its time ({:.3f} ms)", beside.name, mean,
                       candidate.latency_ms);
  if (interval.high < 1) return "";
  return fmt::format("not surely faster than {}: {:.3f} times its time, {:.3f} to {:.3f} after {}",
                     beside.name, mean, interval.low, interval.high,
                     counted(fewest_runs(candidate), "round"));
}

std::string why_invalid(const CandidateReport& candidate, const Strategy& strategy, double min_cosine,
                        bool has_fp32) {
  // What the others are compared with; rounding alone makes its cosine to itself less than 1.
  if (candidate.is_eager) return "";
  if (std::string wrong = why_wrong(candidate, min_cosine); !wrong.empty()) return wrong;
  if (std::string open = why_open(candidate); !open.empty()) return open;
  if (std::string slow = why_slow(candidate, kBesideEager); !slow.empty()) return slow;
  if (candidate.is_fp32 || !strategy.beat_fp32 || !has_fp32) return "";
  return why_slow(candidate, kBesideFp32);
}

bool ran(const CandidateReport& candidate) {
  return candidate.verdict != Verdict::kFailed && candidate.verdict != Verdict::kNotTried;
}

/// The faster one of the valid baselines.
size_t fallback(const std::vector<CandidateReport>& candidates) {
  std::optional<size_t> best;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const CandidateReport& each = candidates[i];
    if (each.verdict != Verdict::kValid || (!each.is_eager && !each.is_fp32)) continue;
    if (!best || each.latency_ms < candidates[*best].latency_ms) best = i;
  }
  if (!best) fail(ErrorCode::kInvalidArgument, "tuning: not even eager ran");
  return *best;
}

std::string describe_win(const CandidateReport& chosen) {
  std::string text;
  if (const double eager = mean_ratio(chosen.times, &ShapeTime::to_eager); eager > 0 && !chosen.is_eager)
    text = fmt::format("{:.2f} times as fast as eager", 1 / eager);
  if (const double fp32 = mean_ratio(chosen.times, &ShapeTime::to_fp32);
      fp32 > 0 && !chosen.is_fp32 && !chosen.is_eager)
    text += fmt::format(", {:.2f} times as fast as Halftone's fp32", 1 / fp32);
  const Interval interval = mean_interval(chosen.times, kBesideEager);
  if (!chosen.is_eager && interval.low > 0 && !interval.is_open())
    text += fmt::format("; to eager {:.2f} to {:.2f} (95 %, {})", 1 / interval.high, 1 / interval.low,
                        counted(fewest_runs(chosen), "round"));
  return text;
}

/// The names of valid ones that may be as fast: their intervals meet the chosen one's.
std::string describe_ties(const std::vector<CandidateReport>& candidates, const CandidateReport& chosen) {
  const Interval own = mean_interval(chosen.times, kBesideEager);
  std::vector<std::string> names;
  for (const CandidateReport& each : candidates) {
    if (&each == &chosen || each.verdict != Verdict::kValid || each.times.empty() || each.is_eager) continue;
    const Interval other = mean_interval(each.times, kBesideEager);
    if (own.low > 0 && other.low > 0 && other.low <= own.high) names.push_back(each.name);
  }
  return names.empty() ? "" : fmt::format("; not surely faster than {}", fmt::join(names, ", "));
}

std::optional<size_t> ask(const Strategy& strategy, const std::vector<CandidateReport>& candidates) {
  if (!strategy.choose) return std::nullopt;
  const auto choice = strategy.choose(candidates);
  if (choice && (*choice >= candidates.size() || candidates[*choice].verdict != Verdict::kValid)) {
    fail(ErrorCode::kInvalidArgument, "strategy \"{}\" chose {}, which is not valid", strategy.name,
         *choice < candidates.size() ? candidates[*choice].name : fmt::format("number {}", *choice));
  }
  return choice;
}

}  // namespace

void judge(std::vector<CandidateReport>& candidates, const Strategy& strategy, double min_cosine) {
  const bool has_fp32 = std::any_of(candidates.begin(), candidates.end(), [](const CandidateReport& each) {
    return each.is_fp32 && ran(each) && !each.times.empty();
  });
  for (CandidateReport& candidate : candidates) {
    if (!ran(candidate)) continue;
    candidate.reason = why_invalid(candidate, strategy, min_cosine, has_fp32);
    candidate.verdict = candidate.reason.empty() ? Verdict::kValid : Verdict::kDropped;
  }
}

void choose(TuneReport& report, const Strategy& strategy) {
  judge(report.candidates, strategy, report.min_cosine);
  const auto choice = ask(strategy, report.candidates);
  const size_t index = choice ? *choice : fallback(report.candidates);
  CandidateReport& chosen = report.candidates[index];
  report.chosen = chosen.name;
  report.met = choice.has_value();
  report.won = choice && !chosen.is_eager && !chosen.is_fp32;
  chosen.verdict = Verdict::kChosen;
  chosen.reason = describe_win(chosen);
  if (report.won) {
    chosen.reason += describe_ties(report.candidates, chosen);
    return;
  }
  report.notes.push_back(
      choice
          ? fmt::format("Nothing that the strategy \"{}\" allows is better than {}: that is taken.",
                        report.strategy, chosen.name)
          : fmt::format("No candidate meets the strategy \"{}\": {}, the faster of the baselines, is taken.",
                        report.strategy, chosen.name));
}

void score(CandidateReport& candidate, const std::vector<SampleShape>& shapes) {
  int64_t smallest = std::numeric_limits<int64_t>::max();
  for (const SampleShape& shape : shapes) smallest = std::min(smallest, shape.batch.value_or(1));
  double latencies = 0, rates = 0;
  int counted = 0;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const auto batch = static_cast<double>(std::max<int64_t>(1, shapes[i].batch.value_or(1)));
    const double ms = candidate.times[i].median;
    rates += std::log(batch / (ms * 1e-3));
    if (shapes[i].batch.value_or(1) != smallest) continue;
    latencies += std::log(ms);
    ++counted;
  }
  candidate.latency_ms = std::exp(latencies / counted);
  candidate.throughput = std::exp(rates / static_cast<double>(shapes.size()));
}

}  // namespace halftone
