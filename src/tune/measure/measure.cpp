// measure(): the rounds that halftone/tune/measure.h describes.
#include "halftone/tune/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "halftone/cli/message.h"
#include "tune/measure/machine_watch.h"

namespace halftone {
namespace {

// A shorter run would pay for the caches that the candidate before it filled: it gets an untimed one first.
constexpr double kShortMs = 60;
// Shorter runs are repeated until they add up to this, and their mean counts.
constexpr double kTurnMs = 1;
constexpr int kMaxRepeats = 64;
constexpr int kMinWarmUp = 3;
constexpr int kMaxWarmUp = 8;
// A run this long warms itself up; two are for TorchScript, which profiles in the first one.
constexpr double kLongMs = 500;
constexpr int kLongWarmUp = 2;
constexpr double kSettled = 0.95;
// One round may be a hiccup of the machine; three are not.
constexpr int kEarlyRounds = 3;
// A turn that was disturbed is made again, unless it is long: then most of its time was its own. Beside
// programs that are always busy only short turns can be undisturbed, between two time slices, and only some of
// them: these are tried more often, for as long as a few slices take.
constexpr int kTurnTries = 4;
constexpr int kMaxTurnTries = 64;
constexpr double kTriesMs = 100;
constexpr double kLongTurnMs = 250;
// What an interval of a median needs.
constexpr int kFewestQuiet = 6;
// Where most rounds were disturbed, those that are left must tell candidates apart that differ by this.
constexpr double kWorthKnowing = 1.1;

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class MeasuringRun {
 public:
  MeasuringRun(const std::vector<TimedCandidate>& timed_candidates, const MeasureOptions& options)
      : timed_candidates_(timed_candidates),
        options_(options),
        first_(timed_candidates.size()),
        in_(timed_candidates.size(), true),
        all_times_(timed_candidates.size()) {
    if (!options_.watch && !options_.clock) options_.watch = watch_this_machine();
    if (!options_.clock) options_.clock = steady_seconds;
    for (const TimedCandidate& timed_candidate : timed_candidates) {
      result_.rows.emplace_back();
      result_.rows.back().name = timed_candidate.name;
    }
  }

  Measurements run() {
    for (size_t i = 0; i < timed_candidates_.size(); ++i) attempt(i, [&] { check_and_warm_up(i); });
    const double start = options_.clock();
    const auto spent = [&] { return options_.clock() - start; };
    while (any_in() && result_.rounds < options_.max_rounds &&
           (result_.rounds + result_.disturbed < options_.min_rounds || spent() < options_.seconds)) {
      round();
      if (options_.progress) options_.progress(share_done(spent()));
      // Statistics of many short rounds would cost more than the rounds.
      if (result_.rounds > 64 && result_.rounds % (result_.rounds / 16) != 0) continue;
      summarize();
      drop_hopeless();
      if (result_.rounds >= options_.min_rounds && options_.confidence > 0 && all_decided()) {
        result_.decided = true;
        break;
      }
    }
    result_.seconds = spent();
    summarize();
    look_at_disturbance();
    return std::move(result_);
  }

 private:
  template <typename Action>
  void attempt(size_t i, Action action) {
    try {
      action();
    } catch (const std::exception& error) {
      leave(i, error.what(), true);
    } catch (...) {
      leave(i, "it threw something that is no exception", true);
    }
  }

  void leave(size_t i, std::string reason, bool failed) {
    in_[i] = false;
    result_.rows[i].failed = failed;
    result_.rows[i].reason = std::move(reason);
  }

  bool any_in() const { return std::find(in_.begin(), in_.end(), true) != in_.end(); }

  double run_once(const TimedCandidate& timed_candidate) const {
    if (timed_candidate.prepare) timed_candidate.prepare();
    const double start = options_.clock();
    timed_candidate.run();
    return (options_.clock() - start) * 1e3;
  }

  void check_and_warm_up(size_t i) {
    const TimedCandidate& timed_candidate = timed_candidates_[i];
    if (timed_candidate.check) {
      const std::string wrong = timed_candidate.check();
      if (!wrong.empty()) return leave(i, wrong, true);
    }
    double fastest = std::numeric_limits<double>::infinity();
    for (int run = 0; run < kMaxWarmUp; ++run) {
      const double time = run_once(timed_candidate);
      const bool settled = time > kSettled * fastest;
      fastest = std::min(fastest, time);
      if (settled && run + 1 >= kMinWarmUp) break;
      if (fastest > kLongMs && run + 1 >= kLongWarmUp) break;
    }
    first_[i] = fastest;
  }

  /// Milliseconds, and whether the run was undisturbed.
  std::pair<double, bool> timed_runs(size_t i) const {
    const TimedCandidate& timed_candidate = timed_candidates_[i];
    const std::function<bool()> disturbed = options_.watch ? options_.watch() : nullptr;
    if (first_[i] < kShortMs) run_once(timed_candidate);
    const int repeats =
        static_cast<int>(std::clamp(kTurnMs / std::max(first_[i], 1e-6), 1.0, double{kMaxRepeats}));
    double sum = 0;
    for (int k = 0; k < repeats; ++k) sum += run_once(timed_candidate);
    return {sum / repeats, !disturbed || !disturbed()};
  }

  int tries_of(size_t i) const {
    if (first_[i] > kLongTurnMs) return 1;
    const double turn_ms = first_[i] + std::max(first_[i], kTurnMs);
    return static_cast<int>(std::clamp(kTriesMs / turn_ms, double{kTurnTries}, double{kMaxTurnTries}));
  }

  void turn(size_t i) {
    const int tries = tries_of(i);
    bool quiet = false;
    for (int k = 0; k < tries && !quiet; ++k) std::tie(now_[i], quiet) = timed_runs(i);
    round_is_quiet_ = round_is_quiet_ && quiet;
  }

  void round() {
    const size_t count = timed_candidates_.size();
    const auto turns = static_cast<size_t>(result_.rounds + result_.disturbed);
    now_.assign(count, std::nullopt);
    round_is_quiet_ = true;
    // A round with a disturbed turn is dropped: the turns after it would be for nothing.
    for (size_t k = 0; k < count && round_is_quiet_; ++k) {
      const size_t i = (k + turns) % count;
      if (in_[i]) attempt(i, [&] { turn(i); });
    }
    for (size_t i = 0; i < count; ++i) {
      if (!in_[i] || !now_[i]) continue;
      all_times_[i].push_back(*now_[i]);
      if (round_is_quiet_) result_.rows[i].times.push_back(*now_[i]);
    }
    ++(round_is_quiet_ ? result_.rounds : result_.disturbed);
  }

  void look_at_disturbance() {
    const bool too_few =
        result_.disturbed > 0 && result_.rounds < std::min(kFewestQuiet, options_.min_rounds);
    result_.too_busy = too_few || (result_.disturbed > result_.rounds && may_be_wrong());
    if (!result_.too_busy) return;
    for (size_t i = 0; i < timed_candidates_.size(); ++i) result_.rows[i].times = std::move(all_times_[i]);
    summarize();
  }

  /// Whether one may be faster than the leader by more than what matters.
  bool may_be_wrong() const {
    for (size_t i = 0; i < timed_candidates_.size(); ++i) {
      if (!in_[i] || timed_candidates_[i].brief) continue;
      if (result_.rows[i].relative_interval.low * kWorthKnowing < 1) return true;
    }
    return false;
  }

  double share_done(double spent) const {
    const double by_time = options_.seconds > 0 ? spent / options_.seconds : 1;
    const double by_rounds = result_.rounds / static_cast<double>(std::max(1, options_.min_rounds));
    return std::clamp(std::min(by_time, by_rounds), 0.0, 1.0);
  }

  std::optional<size_t> find_leader() const {
    std::optional<size_t> leader;
    for (size_t i = 0; i < timed_candidates_.size(); ++i) {
      const MeasuredTime& row = result_.rows[i];
      if (row.failed || row.times.empty() || timed_candidates_[i].brief) continue;
      if (!leader || row.median < result_.rows[*leader].median) leader = i;
    }
    return leader;
  }

  void summarize() {
    for (MeasuredTime& row : result_.rows) {
      if (row.times.empty()) continue;
      row.median = quantile(row.times, 0.5);
      row.p10 = quantile(row.times, 0.1);
      row.p90 = quantile(row.times, 0.9);
      row.interval = median_interval(row.times, options_.level);
    }
    const auto leader = find_leader();
    if (!leader) return;
    result_.leader = *leader;
    for (MeasuredTime& row : result_.rows) {
      if (!row.times.empty()) compare(row, result_.rows[*leader]);
    }
  }

  void compare(MeasuredTime& row, const MeasuredTime& leader) const {
    row.relative = paired_ratio(row, leader);
    row.relative_interval = paired_interval(row, leader, options_.level);
  }

  bool hopeless(size_t i) const {
    const MeasuredTime& row = result_.rows[i];
    const MeasuredTime& leader = result_.rows[result_.leader];
    if (result_.rounds >= options_.min_rounds) return row.relative_interval.low > options_.drop_ratio;
    if (timed_candidates_[i].keep || result_.rounds < kEarlyRounds) return false;
    return *std::min_element(row.times.begin(), row.times.end()) >
           2 * options_.drop_ratio * *std::max_element(leader.times.begin(), leader.times.end());
  }

  void drop_hopeless() {
    const auto leader = find_leader();
    for (size_t i = 0; i < timed_candidates_.size(); ++i) {
      const MeasuredTime& row = result_.rows[i];
      if (!in_[i] || row.times.empty() || leader == i || timed_candidates_[i].always) continue;
      if (timed_candidates_[i].brief && result_.rounds >= options_.min_rounds) {
        leave(i, fmt::format("measured in {} only", counted(result_.rounds, "round")), false);
      } else if (leader && options_.drop_ratio > 0 && hopeless(i)) {
        leave(i,
              fmt::format("{:.2f} times the time of {} after {}: not measured further", row.relative,
                          result_.rows[*leader].name, counted(result_.rounds, "round")),
              false);
      }
    }
  }

  bool all_decided() const {
    const size_t count = static_cast<size_t>(std::count(in_.begin(), in_.end(), true));
    for (size_t i = 0; i < timed_candidates_.size(); ++i) {
      if (!in_[i]) continue;
      const MeasuredTime& row = result_.rows[i];
      if (i == result_.leader) {
        // Beside others the ratios count; alone there is nothing but its own times.
        if (count == 1 && !(row.interval.half_width() <= options_.confidence * row.median)) return false;
      } else if (!(row.relative_interval.low > 1) &&
                 !(row.relative_interval.half_width() <= options_.confidence * row.relative)) {
        return false;
      }
    }
    return true;
  }

  const std::vector<TimedCandidate>& timed_candidates_;
  MeasureOptions options_;
  std::vector<double> first_;  ///< ms of the fastest warm-up
  std::vector<bool> in_;
  std::vector<std::optional<double>> now_;  ///< of this round
  bool round_is_quiet_ = true;
  std::vector<std::vector<double>> all_times_;  ///< of disturbed rounds too
  Measurements result_;
};

}  // namespace

MachineBusy::MachineBusy(int disturbed, int rounds)
    : Error(
          ErrorCode::kState,
          fmt::format("this machine is too busy to say ({} of {} disturbed): stop other programs, or give it "
                      "a longer time limit",
                      disturbed, counted(rounds, "round"))) {}

void require_quiet(const Measurements& measured) {
  if (measured.too_busy) throw MachineBusy(measured.disturbed, measured.disturbed + measured.rounds);
}

Measurements measure(const std::vector<TimedCandidate>& timed_candidates, const MeasureOptions& options) {
  return MeasuringRun(timed_candidates, options).run();
}

}  // namespace halftone
