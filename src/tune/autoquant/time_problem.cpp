#include "tune/autoquant/time_problem.h"

#include <ATen/Parallel.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "compiler/executor/worker_pools.h"
#include "halftone/compile/compile.h"
#include "halftone/tune/measure.h"
#include "quant/graph/quantize_graph.h"
#include "tune/candidate_run.h"

namespace halftone::aq {
namespace {

constexpr int64_t kUsualCache = int64_t{32} << 20;
constexpr int64_t kLine = 64;
constexpr int64_t kSweepChunk = int64_t{256} << 10;
constexpr int kMinSweepRounds = 6;
// Far behind the fastest: its exact time is of no interest.
constexpr double kFarBehind = 1.25;

int64_t last_level_cache() {
  for (const int level : {_SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE}) {
    if (const int64_t bytes = sysconf(level); bytes > 0) return bytes;
  }
  return kUsualCache;
}

/// Memory that is read between runs.
class Sweep {
 public:
  explicit Sweep(int64_t most)
      : most_(std::min(most, 2 * last_level_cache())), memory_(static_cast<size_t>(most_), 1) {}

  void read(int64_t bytes, const std::vector<c10::IValue>& inputs) const {
    compiler::PoolLease lease(std::max(1, at::get_num_threads()));
    read_by_all(lease.parallel_for(), memory_.data(), std::min(bytes, most_));
    for (const c10::IValue& input : inputs) {
      const at::Tensor& tensor = input.toTensor();
      read_by_all(lease.parallel_for(), static_cast<const char*>(tensor.const_data_ptr()),
                  static_cast<int64_t>(tensor.nbytes()));
    }
  }

 private:
  static void read_by_all(ParallelFor& parallel_for, const char* memory, int64_t bytes) {
    std::atomic<int64_t> sink = 0;
    parallel_for.run((bytes + kSweepChunk - 1) / kSweepChunk, [&](int64_t index, int) {
      int64_t sum = 0;
      const int64_t end = std::min(bytes, (index + 1) * kSweepChunk);
      for (int64_t i = index * kSweepChunk; i < end; i += kLine) sum += memory[i];
      sink += sum;
    });
  }

  int64_t most_;
  std::vector<char> memory_;
};

/// A problem with a scheme, ready to run.
struct Build {
  std::shared_ptr<const CompiledGraph> model;
  std::vector<at::Tensor> outputs;
  int64_t bytes_beside = 0;  ///< of the model's other layers in this scheme
};

Build build_problem(const Problem& problem, const AutoquantScheme& scheme, int64_t weights_beside) {
  const auto module = problem.module->clone();
  QuantizeOptions options;
  if (problem.has_maker) options.exclude = kMakerLayer;
  if (scheme.config) quantize_(*module, *scheme.config, options);
  Build build;
  const double bytes_of_weight = static_cast<double>(bytes_of_tensors(*module->tensors())) /
                                 static_cast<double>(std::max<int64_t>(1, problem.weights));
  build.bytes_beside = static_cast<int64_t>(bytes_of_weight * static_cast<double>(weights_beside));
  build.model = compile(module);
  for (const c10::IValue& output : build.model->run(problem.inputs))
    build.outputs.push_back(output.toTensor());
  return build;
}

/// A disturbance may last longer than the short time that one problem gets: three times as long is tried.
Measurements measure_in_peace(const std::vector<TimedCandidate>& timed_candidates, MeasureOptions options) {
  Measurements measured = measure(timed_candidates, options);
  for (int again = 0; again < 2 && measured.too_busy; ++again) {
    options.seconds *= 2;
    measured = measure(timed_candidates, options);
  }
  require_quiet(measured);
  return measured;
}

}  // namespace

std::vector<SchemeTime> time_problem(const Problem& problem, const std::vector<AutoquantScheme>& schemes,
                                     int64_t weights_beside, double seconds) {
  std::vector<SchemeTime> times;
  std::vector<Build> builds;
  std::vector<size_t> owners;
  int64_t most = 0;
  for (const AutoquantScheme& scheme : schemes) {
    times.push_back({scheme.name, std::nullopt, {}});
    try {
      builds.push_back(build_problem(problem, scheme, weights_beside));
      owners.push_back(times.size() - 1);
      most = std::max(most, builds.back().bytes_beside);
    } catch (const std::exception& error) {
      times.back().note = short_message(error);
    }
  }
  const Sweep sweep(most);
  std::vector<TimedCandidate> timed_candidates;
  for (size_t i = 0; i < builds.size(); ++i) {
    TimedCandidate timed_candidate;
    timed_candidate.name = times[owners[i]].scheme;
    timed_candidate.run = [&problem, &build = builds[i]] {
      build.model->run_into(problem.inputs, build.outputs);
    };
    timed_candidate.prepare = [&problem, &sweep, &build = builds[i]] {
      sweep.read(build.bytes_beside, problem.inputs);
    };
    timed_candidates.push_back(std::move(timed_candidate));
  }
  MeasureOptions options;
  options.seconds = seconds;
  options.min_rounds = kMinSweepRounds;
  options.confidence = 0.01;
  options.drop_ratio = kFarBehind;
  const Measurements measured = measure_in_peace(timed_candidates, options);
  const double leader = measured.rows.empty() ? 0 : measured.rows[measured.leader].median;
  for (size_t i = 0; i < builds.size(); ++i) {
    const MeasuredTime& row = measured.rows[i];
    if (row.failed || row.times.empty()) {
      times[owners[i]].note = row.reason;
    } else {
      times[owners[i]].milliseconds = leader * row.relative;
    }
  }
  return times;
}

}  // namespace halftone::aq
