// Tuning: tries ways to run a model, measures each, keeps what is right, and takes the best. docs/tuning.md.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "halftone/backend/backend.h"
#include "halftone/base/api.h"
#include "halftone/base/progress.h"
#include "halftone/tune/report.h"
#include "halftone/tune/samples.h"

namespace halftone {

/// A way to run the model, with a name for tables. Any recipe, built in or the user's own.
struct TuneCandidate {
  std::string name;
  std::shared_ptr<const BackendRecipe> recipe;
};

/// eager, ts, fp32, bf16, int8wo, int8dq, int8dq-7bit, int4wo, int4wo-int8act, fp8wo, fp8dq, int8static and
/// int8static-7bit (models with convolutions only), autoquant. Eager and fp32 (the halftone backend) are the
/// baselines: tune() adds them where a list has them not.
HALFTONE_API std::vector<TuneCandidate> default_candidates();
/// Those of default_candidates() with one of these backends (their types, or eager, ts, halftone, quant) and,
/// as far as they quantize, with one of these schemes (their names above, or those of schemes(): a scheme
/// that has no candidate becomes one). Empty: all. kInvalidArgument, with the nearest name, for others;
/// kUnsupported for bf16, eager and ts, which are no schemes.
HALFTONE_API std::vector<TuneCandidate> select_candidates(const std::vector<std::string>& backends,
                                                          const std::vector<std::string>& schemes);

/// How good an answer is; larger is better.
using TuneMetric = std::function<double(const c10::IValue& expected, const c10::IValue& got)>;

/// Which of the valid candidates is taken: a name and a function. A user's own is as good as those below.
///
/// Several shapes count alike: latency_ms is the geometric mean of the medians over the shapes with the
/// smallest batch, throughput that of batch / median over all shapes (of 1 / median if there is no batch).
/// A limit in milliseconds holds for the median at every shape.
///
/// A candidate is valid if it has no new NaNs, its least cosine is TuneOptions::min_cosine or more, and
/// it is faster than eager and than Halftone's fp32 (fp32 itself: than eager), by the geometric mean over all
/// shapes of the paired ratios.
struct Strategy {
  std::string name;
  /// The index of a valid candidate, or nothing: then the faster one of the baselines is taken.
  std::function<std::optional<size_t>(const std::vector<CandidateReport>& candidates)> choose;
  bool beat_fp32 = true;             ///< false: slower than fp32 is no reason to drop one
  bool stop_at_first = false;        ///< candidates are tried one by one, in their order, until one is valid
  std::string only;                  ///< the only candidate beside the baselines; empty: all
  std::optional<double> min_cosine;  ///< stronger than TuneOptions::min_cosine
};

HALFTONE_API Strategy max_throughput();
HALFTONE_API Strategy min_latency();
/// The first valid one in the candidates' order; the baselines do not count.
HALFTONE_API Strategy first_win();
/// That one and no other, if it is valid.
HALFTONE_API Strategy one_backend(std::string candidate);
/// The best throughput among those with at most `ms` at every shape.
HALFTONE_API Strategy latency_budget(double ms);
/// The fastest with a least cosine of `minimum` or more, whatever TuneOptions::min_cosine says.
HALFTONE_API Strategy accuracy_budget(double minimum);
/// The fastest for which the user's metric is `minimum` or more.
HALFTONE_API Strategy metric_budget(double minimum);
/// The fewest bytes with at most `ms` at every shape. Need not be faster than fp32: only that limit counts,
/// and eager.
HALFTONE_API Strategy smallest_size(double ms);

/// "throughput", "latency", "first", "one", "latency-budget", "accuracy", "metric", "size", and what they
/// need. kInvalidArgument for another name and for a missing number.
struct StrategyNumbers {
  std::optional<double> budget_ms;  ///< of latency-budget, size
  std::optional<double> minimum;    ///< of accuracy, metric
  std::string candidate;            ///< of one
};
HALFTONE_API Strategy strategy_by_name(std::string_view name, const StrategyNumbers& numbers = {});
HALFTONE_API std::vector<std::string> strategy_names();

/// Candidates are built and run in a child process first; a crash there is a row of the report.
struct TuneIsolation {
  /// A program and its first arguments. It gets four more and prints what run_trial() makes of them:
  /// {"…/halftone", "trial"}.
  std::vector<std::string> command;
  double seconds = 60;  ///< for one trial; then it is killed
};
/// The child's side. `args` are the four: model file, backend type, its config, number of threads. Returns a
/// line of JSON for stdout; an error is in it. Never throws.
HALFTONE_API std::string run_trial(const std::vector<std::string>& args);

struct HALFTONE_API TuneOptions {
  std::vector<TuneCandidate> candidates;  ///< empty: default_candidates()
  double min_cosine = 0.99;
  TuneMetric metric;
  std::string metric_name;   ///< a metric without a name keeps the measurements out of the cache
  double time_limit = 60;    ///< seconds for everything; later candidates are not tried
  double confidence = 0.01;  ///< relative, of the comparison with the leader; see measure.h
  std::string cache_dir;     ///< of measurements, and of what backends keep; empty: none
  std::optional<TuneIsolation> isolate;
  GraphSpec spec;  ///< of a C++ module; `dynamic` may be left to the samples
  c10::Device device = c10::Device(c10::DeviceType::CPU);
  uint64_t seed = 0;  ///< of made-up samples
  ProgressCallback progress;
};

struct TuneResult {
  Backend backend;  ///< ACTIVE; its tuning() is the report
  TuneReport report;
};

/// Never gives up because of a candidate: one that fails is a row with its error. kInvalidArgument if
/// there are no samples; exceptions of eager itself are passed on. If nothing beats the baselines, the faster
/// of them is the result and the report says so.
///
/// Every run of a model with state begins with the state of a new session. All candidates are in memory at
/// once while they are measured. Not for several threads at a time: they would measure each other.
HALFTONE_API TuneResult tune(const ModelSource& model, const Samples& samples,
                             const Strategy& strategy = max_throughput(), const TuneOptions& options = {});

/// A measurement that a cache holds.
struct TuneCacheEntry {
  std::string file;
  std::string measured_at;
  std::string model;  ///< as it was called then
  std::string shapes;
  std::string machine;
  size_t candidates = 0;
  int rounds = 0;
  int disturbed = 0;
};
/// Sorted by time. Other files and damaged ones are left out.
HALFTONE_API std::vector<TuneCacheEntry> tune_cache(const std::string& cache_dir);
/// Removes all measurements, damaged ones too; how many. kIo if that cannot be done.
HALFTONE_API size_t clear_tune_cache(const std::string& cache_dir);

/// What tune() would do. Nothing is run, built or captured.
struct HALFTONE_API TuneDryRun {
  struct Entry {
    std::string name;
    std::string backend;
    bool baseline = false;
  };
  std::string model;
  std::string strategy;
  std::vector<Entry> candidates;  ///< in the order of trial
  std::vector<SampleShape> shapes;
  std::vector<SampleRange> ranges;  ///< without checks
  int held_out = 0;
  int synthetic = 0;
  double min_cosine = 0;
  double time_limit = 0;
  bool isolated = false;
  bool cached = false;  ///< the measurements are there already; of C++ modules this is not known, and false
  std::string to_text() const;
  std::string to_json() const;
};
HALFTONE_API TuneDryRun dry_run(const ModelSource& model, const Samples& samples,
                                const Strategy& strategy = max_throughput(), const TuneOptions& options = {});

}  // namespace halftone
