// tune(): set up, measure or read the cache, judge, choose, and build the winner.
#include "halftone/tune/tune.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <utility>

#include "backend/lifecycle/backend_access.h"
#include "base/errors.h"
#include "halftone/base/version.h"
#include "halftone/cli/kernels.h"
#include "halftone/cli/message.h"
#include "tune/candidates.h"
#include "tune/judge.h"
#include "tune/measure/machine.h"
#include "tune/report/cache.h"
#include "tune/report/fingerprint.h"
#include "tune/setup.h"
#include "tune/tuning_run.h"

namespace halftone {
namespace {

using Clock = std::chrono::steady_clock;

/// Of something that might have been taken: what is wrong, or far behind after three rounds, never will be.
bool is_open(const CandidateReport& row) {
  return row.stopped.empty() && std::any_of(row.times.begin(), row.times.end(), [](const ShapeTime& time) {
           return !(time.high < std::numeric_limits<double>::infinity());
         });
}

bool has_open_interval(const TuneReport& report) {
  return std::any_of(report.candidates.begin(), report.candidates.end(), is_open);
}

class Tuning {
 public:
  Tuning(const ModelSource& model, const Samples& samples, const Strategy& strategy,
         const TuneOptions& options)
      : start_(Clock::now()),
        model_(model),
        strategy_(strategy),
        options_(options),
        setup_(set_up(model, samples, strategy, options)) {}

  TuneResult run() { return run(captured_backend(model_, setup_, options_.device)); }

  TuneResult run(const Backend& captured) {
    captured_.emplace(captured);
    graph_ = BackendAccess::content(captured).original;
    TuneReport report = measured();
    require_measured(report);
    describe(report);
    return finish(std::move(report));
  }

 private:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  TuneReport measured() {
    const bool nameless = options_.metric && options_.metric_name.empty();
    const std::string cache_dir = nameless ? "" : options_.cache_dir;
    const CacheKey key = cache_key(setup_, model_hash(*graph_), strategy_, options_);
    if (auto cached = load_measurements(cache_dir, key)) {
      cached->from_cache = true;
      // What is held against no bound is known here, whatever the file says.
      for (CandidateReport& row : cached->candidates) {
        row.is_eager = is_eager_baseline(*candidate(row.name).recipe);
        row.is_fp32 = is_fp32_baseline(*candidate(row.name).recipe);
      }
      return *std::move(cached);
    }
    TuneReport report;
    report.model_hash = key.model_hash;
    report.measured_at = utc_now();
    report.ranges = setup_.layout.ranges;
    run_.emplace(TuningInput{graph_, setup_.layout, setup_.candidates, strategy_, options_, setup_.min_cosine,
                             start_});
    run_->run(report);
    if (run_->is_complete()) {
      describe(report);
      if (!has_open_interval(report)) store_measurements(cache_dir, key, report);
    } else {
      report.notes.push_back("The time limit ended the tuning before every candidate was tried.");
    }
    return report;
  }

  /// Fewer than six rounds of eager are no basis for any verdict.
  void require_measured(const TuneReport& report) const {
    const CandidateReport& eager = report.candidates.front();
    if (!is_open(eager)) return;
    int rounds = std::numeric_limits<int>::max();
    for (const ShapeTime& time : eager.times) rounds = std::min(rounds, time.runs);
    fail(ErrorCode::kState,
         "tuning: not measured long enough: {} within the time limit of {} s, and six are needed to say "
         "anything; give it a longer one, or fewer candidates",
         counted(rounds, "round"), options_.time_limit);
  }

  void describe(TuneReport& report) const {
    report.model = graph_->name;
    report.cpu = cpu_name();
    report.isa = active_instruction_set();
    report.threads = at::get_num_threads();
    report.version = version();
    report.strategy = strategy_.name;
    report.min_cosine = setup_.min_cosine;
    report.metric = options_.metric_name;
    report.shapes = setup_.layout.shapes;
    report.held_out = static_cast<int>(setup_.layout.validation.size());
    report.synthetic = static_cast<int>(setup_.layout.synthetic);
  }

  const TuneCandidate& candidate(const std::string& name) const {
    for (const TuneCandidate& each : setup_.candidates) {
      if (each.name == name) return each;
    }
    fail(ErrorCode::kInternal, "tuning: candidate \"{}\" is not there", name);
  }

  /// What was chosen, as it was measured; where the measurements come from the cache, built now. One that
  /// cannot be built is a failed one, and the strategy is asked again.
  TuneResult finish(TuneReport report) {
    const std::vector<std::string> notes = report.notes;
    while (true) {
      report.notes = notes;
      choose(report, strategy_);
      try {
        std::optional<ReadyModel> made;
        if (run_) made = run_->take_ready(report.chosen);
        Backend backend = BackendAccess::built_like(*captured_, candidate(report.chosen).recipe,
                                                    std::move(made), options_.cache_dir);
        report.seconds = seconds();
        BackendAccess::set_tuning(backend, report.to_json());
        return {std::move(backend), std::move(report)};
      } catch (const std::exception& error) {
        if (!fail_chosen(report, error)) throw;
      }
    }
  }

  static bool fail_chosen(TuneReport& report, const std::exception& error) {
    for (CandidateReport& row : report.candidates) {
      if (row.name != report.chosen) continue;
      if (row.is_eager) return false;
      row.verdict = Verdict::kFailed;
      row.reason = "it was measured, but could not be built again: " + short_message(error);
    }
    return true;
  }

  Clock::time_point start_;
  const ModelSource& model_;
  const Strategy& strategy_;
  const TuneOptions& options_;
  TuningSetup setup_;
  std::optional<Backend> captured_;
  std::shared_ptr<const GraphModule> graph_;
  std::optional<TuningRun> run_;  ///< where it was measured now
};

}  // namespace

TuneResult tune(const ModelSource& model, const Samples& samples, const Strategy& strategy,
                const TuneOptions& options) {
  return Tuning(model, samples, strategy, options).run();
}

TuneResult tune_captured(const Backend& captured, const ModelSource& model, const Samples& samples,
                         const Strategy& strategy, const TuneOptions& options) {
  return Tuning(model, samples, strategy, options).run(captured);
}

}  // namespace halftone
