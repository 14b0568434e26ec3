// Measuring time: the code that the tuner and the benchmarks share.
//
// Two programs that are timed one after the other are timed on two machines: clocks go up and down,
// neighbours come and go. So candidates take turns. In each round every candidate runs once, and the next
// round begins with the next one, so that none always goes first. The *ratio* of two candidates in the
// same round is compared; its median over the rounds does not notice slow rounds, which hit both.
//
// 1. The caller's check says whether a candidate's answer is right. A wrong one is not timed.
// 2. Warm-up: three to eight runs, until one is no longer 5 % faster than the fastest before it; two if a run
//    takes half a second.
// 3. A turn: if a run is short, one that is not timed (the candidate before has filled the caches with
//    its weights), then one timed run; the mean of several if a run takes less than a millisecond.
// 4. The interval of a median comes from order statistics: the population's median lies between the i-th
//    smallest and the i-th largest of n values with probability 1 - 2 P(B < i), B binomial with n and 1/2.
//    No bell curve is assumed; times are skewed. At 95 % it needs six values.
// 5. The leader has the smallest median. A candidate is *decided* when the interval of its ratio to the
//    leader lies above 1 (it is slower), or is as narrow as `confidence` asks. Measuring ends when all are
//    decided, or with the time budget, never before `min_rounds`.
// 6. A hopeless candidate leaves early and gives its time to the others: one whose ratio lies above
//    `drop_ratio` with that probability; after three rounds already, one that is twice that slow in every
//    run.
// 7. Other programs: each turn is watched. If another program had the processor, the turn is repeated, and
//    after four of them (short turns: as many as fit into 100 ms, at most 64) the round is *disturbed*: its
//    times are dropped, and it is run again while the time budget lasts. The machine is *too busy*, and nothing
//    is said, if fewer than six rounds were undisturbed (or than `min_rounds`, if those are fewer), or if most
//    were disturbed and one candidate may, by its interval, be faster than the leader by more than 10 %.
//    Beside programs that are always busy short runs can be measured all the same, in the moments in which
//    nothing else runs; long ones cannot.
#pragma once

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "halftone/base/api.h"
#include "halftone/base/error.h"

namespace halftone {

/// Called right before a turn; the function that it returns is called right after the turn and says whether
/// other programs had the machine meanwhile. Empty: never.
using MachineWatch = std::function<std::function<bool()>()>;
/// False if the environment says HALFTONE_BUSY=ignore: nothing is ever disturbed then.
HALFTONE_API bool machine_is_watched();

/// Its functions are called from the thread that calls measure(). One that throws leaves with the message.
struct TimedCandidate {
  std::string name;
  std::function<void()> run;
  std::function<void()> prepare = nullptr;       ///< before every run, not timed
  std::function<std::string()> check = nullptr;  ///< before everything: what is wrong with the answer, or ""
  bool keep = false;    ///< never dropped before `min_rounds`: something that others are compared with
  bool always = false;  ///< in every round, never dropped: what all others are divided by
  bool brief = false;   ///< `min_rounds` and no more, never the leader: only its size is of interest
};

struct MeasureOptions {
  double seconds = 4;  ///< of all candidates together, warm-up and checks not counted
  int min_rounds = 6;  ///< in spite of `seconds`
  int max_rounds = 10000;
  double confidence = 0;  ///< half of the interval's width, relative; 0: measure until `seconds` are over
  double level = 0.95;    ///< probability of the intervals
  double drop_ratio = 0;  ///< 0: none is dropped
  std::function<void(double share)> progress = nullptr;  ///< 0 to 1, after each round
  std::function<double()> clock = nullptr;               ///< seconds; for tests. Empty: the steady clock
  MachineWatch watch = nullptr;  ///< for tests. Empty: this machine's, and none beside a `clock` of a test
};

struct HALFTONE_API Interval {
  double low = 0;
  double high = 0;  ///< infinite if there are too few values
  bool is_open() const { return !(high < std::numeric_limits<double>::infinity()); }
  double half_width() const { return (high - low) / 2; }
};

/// All times in milliseconds.
struct MeasuredTime {
  std::string name;
  double median = 0;
  double p10 = 0;
  double p90 = 0;
  Interval interval;           ///< of the median
  double relative = 0;         ///< median of the ratio to the leader, round by round; the leader's is 1
  Interval relative_interval;  ///< of that
  std::vector<double> times;   ///< by round, from the first on; of undisturbed ones
  bool failed = false;         ///< wrong, or it threw; `reason` says what
  std::string reason;          ///< why it was not measured to the end; empty: it was
};

struct Measurements {
  std::vector<MeasuredTime> rows;  ///< one for each candidate, in their order
  size_t leader = 0;               ///< meaningless if all failed
  int rounds = 0;                  ///< undisturbed ones
  int disturbed = 0;               ///< rounds that were dropped
  double seconds = 0;              ///< what measuring took, warm-up not counted
  bool decided = false;            ///< false: the time budget ended it
  bool too_busy = false;           ///< the rows hold the disturbed rounds too: they are no basis for anything
};

/// The machine was too busy to measure. Its code is kState.
class HALFTONE_API MachineBusy : public Error {
 public:
  MachineBusy(int disturbed, int rounds);
};
/// Throws MachineBusy where `measured` is too busy.
HALFTONE_API void require_quiet(const Measurements& measured);

HALFTONE_API Measurements measure(const std::vector<TimedCandidate>& timed_candidates,
                                  const MeasureOptions& options = {});

/// By nearest rank. At least one value.
HALFTONE_API double quantile(std::vector<double> values, double q);
/// Of the median, as above. At least one value.
HALFTONE_API Interval median_interval(std::vector<double> values, double level);
/// Median over the rounds that both ran of a's time divided by b's; 0 if there is no such round.
HALFTONE_API double paired_ratio(const MeasuredTime& a, const MeasuredTime& b);
/// The interval of that; open (infinite) if there are too few rounds.
HALFTONE_API Interval paired_interval(const MeasuredTime& a, const MeasuredTime& b, double level = 0.95);

}  // namespace halftone
