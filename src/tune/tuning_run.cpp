#include "tune/tuning_run.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/errors.h"
#include "tune/judge.h"
#include "tune/static_int8/not_made_for.h"

namespace halftone {
namespace {

// Of the time limit: building may not take more, or nothing is left to measure with.
constexpr double kBuildShare = 0.6;
constexpr double kDropRatio = 1.3;
constexpr int kUsualRounds = 10;
// What a verdict needs, even if it ends after the time limit. If it would take as long as that again,
// those that are far behind leave after three.
constexpr int kVerdictRounds = 6;
constexpr int kFewestRounds = 3;
constexpr int64_t kProgressSteps = 1000;

/// A quotient of two medians of ratios may lie outside of the interval of the pairs themselves: what is said
/// must hold both.
Interval holding(Interval interval, double value) {
  return {std::min(interval.low, value), std::max(interval.high, value)};
}

Interval inverse(const Interval& interval) {
  return {1 / interval.high, interval.low > 0 ? 1 / interval.low : std::numeric_limits<double>::infinity()};
}

/// What one shape's measurements say of a candidate. `fp32`: nullptr if it did not run.
ShapeTime shape_time(const MeasuredTime& time, const MeasuredTime& eager, const MeasuredTime* fp32) {
  ShapeTime result;
  result.p10 = time.p10;
  result.p90 = time.p90;
  result.runs = static_cast<int>(std::min(time.times.size(), eager.times.size()));
  result.to_eager = paired_ratio(time, eager);
  result.median = eager.median * result.to_eager;
  const bool is_eager = &time == &eager;
  result.eager_interval = is_eager ? Interval{1, 1} : paired_interval(time, eager);
  result.low = is_eager ? time.interval.low : eager.median * result.eager_interval.low;
  result.high = is_eager ? time.interval.high : eager.median * result.eager_interval.high;
  if (fp32 == nullptr || fp32->times.empty()) return result;
  result.to_fp32 = result.to_eager / paired_ratio(*fp32, eager);
  if (is_eager) {
    result.fp32_interval = inverse(paired_interval(*fp32, eager));
  } else if (fp32 == &time) {
    result.fp32_interval = {1, 1};
  } else {
    result.fp32_interval = holding(paired_interval(time, *fp32), result.to_fp32);
  }
  return result;
}

}  // namespace

TuningRun::TuningRun(const TuningInput& input) : input_(input) {
  for (const TuneCandidate& candidate : input_.candidates) candidates_.emplace_back(candidate);
}

double TuningRun::remaining() const {
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - input_.start;
  return input_.options.time_limit - spent.count();
}

void TuningRun::progress(double done, std::string_view what) const {
  if (!input_.options.progress) return;
  const auto steps = static_cast<int64_t>(std::clamp(done, 0.0, 1.0) * static_cast<double>(kProgressSteps));
  input_.options.progress(steps, kProgressSteps, what);
}

bool TuningRun::is_wrong(const CandidateRun& candidate) const {
  const auto& accuracy = candidate.row.accuracy;
  return !accuracy || accuracy->nans > 0 || !(accuracy->min_cosine >= input_.min_cosine);
}

void TuningRun::ask_eager(TuneReport& report) {
  CandidateRun& eager = candidates_.front();
  if (const std::string failure = trial_failure(eager); !failure.empty())
    fail(ErrorCode::kUnsupported, "tuning: the model itself cannot run: {}", failure);
  eager.build(input_.graph, input_.layout.build, input_.options.cache_dir);
  validation_ = input_.layout.validation;
  for (const Sample& sample : validation_) expected_.push_back(eager.answers(sample));
  eager.require_same_again(*input_.graph, validation_.front(), expected_.front());
  check_range_ends(report);
  eager.validate(validation_, expected_, input_.options.metric);
  eager.row.verdict = Verdict::kValid;
}

/// Ends that eager can run become validation samples: every candidate is compared there too.
void TuningRun::check_range_ends(TuneReport& report) {
  std::vector<RangeEnd> ends;
  try {
    ends = range_ends(*input_.graph, input_.layout);
  } catch (const Error& error) {
    report.notes.push_back(
        fmt::format("The ends of the ranges could not be tried: {}", short_message(error)));
  }
  for (RangeEnd& end : ends) {
    std::vector<std::string>& checks = report.ranges.at(end.range).checks;
    if (remaining() < (1 - kBuildShare) * input_.options.time_limit) {
      checks.push_back(end.note + ": not tried, the time limit is too short");
      continue;
    }
    try {
      auto answers = candidates_.front().answers(end.call);
      expected_.push_back(std::move(answers));
      validation_.push_back(std::move(end.call));
      checks.push_back(end.note + ": runs");
    } catch (const std::exception& error) {
      checks.push_back(fmt::format("{}: does not run: {}", end.note, short_message(error)));
    }
  }
  for (SampleRange& range : report.ranges) {
    if (!range.declared) range.checks.push_back("no range was declared; both ends are samples");
  }
}

/// Without isolation, or if it ran in a child process: empty.
std::string TuningRun::trial_failure(const CandidateRun& candidate) {
  if (!input_.options.isolate) return "";
  TrialRunner::Outcome outcome;
  try {
    if (!trials_) {
      trials_ = std::make_unique<TrialRunner>(*input_.options.isolate, *input_.graph,
                                              input_.layout.shape_calls.front());
    }
    outcome = trials_->run(candidate.recipe());
  } catch (const Error& error) {
    outcome.failure = error.what();
  }
  // The baselines are needed: a failure other than a crash is better reported here.
  const bool baseline = candidate.row.is_eager || candidate.row.is_fp32;
  return baseline && !outcome.killed ? "" : outcome.failure;
}

void TuningRun::try_to_build(CandidateRun& candidate) {
  if (remaining() < (1 - kBuildShare) * input_.options.time_limit) {
    candidate.row.verdict = Verdict::kNotTried;
    candidate.row.reason =
        fmt::format("the time limit of {} s left no time for it", input_.options.time_limit);
    complete_ = false;
    return;
  }
  candidate.row.reason = not_made_for(candidate.recipe(), *input_.graph);
  if (!candidate.row.reason.empty()) {
    candidate.row.verdict = Verdict::kNotTried;
    return;
  }
  try {
    if (const std::string failure = trial_failure(candidate); !failure.empty())
      fail(ErrorCode::kInternal, "{}", failure);
    candidate.build(input_.graph, input_.layout.build, input_.options.cache_dir);
    candidate.validate(validation_, expected_, input_.options.metric);
    candidate.row.verdict = Verdict::kValid;  // until it is judged
  } catch (const MachineBusy&) {
    throw;  // of autoquant, which measures too
  } catch (const std::exception& error) {
    candidate.row.verdict = Verdict::kFailed;
    candidate.row.reason = short_message(error);
    candidate.release();
  } catch (...) {
    candidate.row.verdict = Verdict::kFailed;
    candidate.row.reason = "it threw something that is no exception";
    candidate.release();
  }
}

void TuningRun::time_shape(const std::vector<CandidateRun*>& candidates, size_t shape, double seconds,
                           const std::function<void(double)>& progress) {
  std::vector<TimedCandidate> timed_candidates;
  double round_seconds = 0;
  for (CandidateRun* candidate : candidates) {
    timed_candidates.push_back(candidate->timed_candidate(input_.layout.shape_calls[shape]));
    timed_candidates.back().keep = candidate->row.is_fp32;
    timed_candidates.back().always = candidate->row.is_eager;
    timed_candidates.back().brief = is_wrong(*candidate);
    round_seconds += 2 * candidate->call_seconds();
  }
  MeasureOptions options;
  options.seconds = seconds;
  options.confidence = input_.options.confidence;
  options.drop_ratio = kDropRatio;
  const bool enough = kVerdictRounds * round_seconds < input_.options.time_limit;
  for (TimedCandidate& timed_candidate : timed_candidates)
    timed_candidate.keep = timed_candidate.keep || enough;
  const int least = enough ? kVerdictRounds : kFewestRounds;
  options.min_rounds = std::clamp(static_cast<int>(std::min(1e6, seconds / std::max(round_seconds, 1e-9))),
                                  least, kUsualRounds);
  options.progress = progress;
  const Measurements measured = measure(timed_candidates, options);
  require_quiet(measured);
  rounds_ += measured.rounds;
  disturbed_ += measured.disturbed;
  const MeasuredTime* eager = &measured.rows.front();
  const MeasuredTime* fp32 = nullptr;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i]->row.is_fp32 && !measured.rows[i].failed) fp32 = &measured.rows[i];
  }
  for (size_t i = 0; i < candidates.size(); ++i) {
    CandidateReport& row = candidates[i]->row;
    const MeasuredTime& time = measured.rows[i];
    if (time.failed || time.times.empty()) {
      row.verdict = Verdict::kFailed;
      row.reason = time.reason;
      continue;
    }
    row.times.push_back(shape_time(time, *eager, fp32));
    if (!time.reason.empty()) row.stopped = time.reason;
  }
}

void TuningRun::time_all(const std::vector<CandidateRun*>& candidates, double done, double share) {
  std::vector<CandidateRun*> running;
  for (CandidateRun* candidate : candidates) {
    if (!candidate->is_built()) continue;
    candidate->row.times.clear();
    candidate->row.stopped.clear();
    running.push_back(candidate);
  }
  const size_t shapes = input_.layout.shapes.size();
  for (size_t shape = 0; shape < shapes; ++shape) {
    // A round that has begun is finished.
    const double seconds = std::max(0.0, remaining() - 1) / static_cast<double>(shapes - shape);
    const double from = done + share * static_cast<double>(shape) / static_cast<double>(shapes);
    time_shape(running, shape, seconds, [&](double part) {
      progress(from + share * part / static_cast<double>(shapes),
               "measuring " + input_.layout.shapes[shape].label());
    });
    std::vector<CandidateRun*> still;
    for (CandidateRun* candidate : running) {
      if (candidate->row.verdict != Verdict::kFailed) {
        still.push_back(candidate);
        continue;
      }
      if (candidate->row.is_eager) fail(ErrorCode::kInternal, "eager failed: {}", candidate->row.reason);
      candidate->row.times.clear();
      candidate->release();
    }
    running = std::move(still);
  }
  for (CandidateRun* candidate : running) score(candidate->row, input_.layout.shapes);
}

void TuningRun::try_all() {
  std::vector<CandidateRun*> all;
  const double step = kBuildShare / static_cast<double>(candidates_.size());
  double done = 0;
  for (CandidateRun& candidate : candidates_) {
    progress(done, candidate.row.name);
    if (!candidate.is_built()) try_to_build(candidate);
    all.push_back(&candidate);
    done += step;
  }
  time_all(all, kBuildShare, 1 - kBuildShare);
}

void TuningRun::try_one_by_one() {
  CandidateRun& eager = candidates_.front();
  CandidateRun& fp32 = *std::next(candidates_.begin());
  try_to_build(fp32);
  time_all({&eager, &fp32}, 0, 0);
  bool won = false;
  double done = 0;
  for (auto candidate = std::next(candidates_.begin(), 2); candidate != candidates_.end(); ++candidate) {
    progress(done, candidate->row.name);
    done += 1 / static_cast<double>(candidates_.size());
    if (won) {
      candidate->row.verdict = Verdict::kNotTried;
      candidate->row.reason = "one before it won";
      continue;
    }
    try_to_build(*candidate);
    if (!candidate->is_built()) continue;
    time_all({&eager, &fp32, &*candidate}, done, 0);
    std::vector<CandidateReport> rows{eager.row, fp32.row, candidate->row};
    judge(rows, input_.strategy, input_.min_cosine);
    won = rows.back().verdict == Verdict::kValid;
    if (!won) candidate->release();
  }
}

std::optional<ReadyModel> TuningRun::take_ready(const std::string& name) {
  for (CandidateRun& candidate : candidates_) {
    if (candidate.row.name == name) return candidate.take_ready();
  }
  return std::nullopt;
}

void TuningRun::run(TuneReport& report) {
  ask_eager(report);
  if (input_.strategy.stop_at_first) {
    try_one_by_one();
  } else {
    try_all();
  }
  for (const CandidateRun& candidate : candidates_) report.candidates.push_back(candidate.row);
  report.rounds = rounds_;
  report.disturbed = disturbed_;
  report.watched = machine_is_watched();
  progress(1, "done");
}

}  // namespace halftone
