// profile(): times the steps of a compiled model and computes their limits on this machine.
#include "halftone/compile/profile.h"

#include <algorithm>
#include <chrono>

#include "base/errors.h"
#include "graph/aten/aten_parallel_for.h"
#include "kernels/peaks/peaks.h"

namespace halftone {

namespace {

using Clock = std::chrono::steady_clock;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

MachineLimits measure_limits(int threads) {
  AtenParallelFor parallel_for(threads);
  const kernels::Peaks peaks = kernels::measure_peaks(parallel_for, 5);
  // A multiplication and an addition each.
  return {peaks.read_gbs * 1e9, peaks.fma_gmac * 2e9, peaks.exact7_gmac * 2e9, peaks.exact8_gmac * 2e9};
}

double limit_of(const StepReport& step, const MachineLimits& limits) {
  double most = 0;
  const auto at_least = [&](int64_t amount, double rate) {
    if (rate > 0) most = std::max(most, static_cast<double>(amount) / rate);
  };
  at_least(step.bytes, limits.read_bytes_per_second);
  switch (step.arithmetic) {
    case Arithmetic::kFloat:
      at_least(step.operations, limits.float_operations_per_second);
      break;
    case Arithmetic::kInt7:
      at_least(step.operations, limits.int7_operations_per_second);
      break;
    case Arithmetic::kInt8:
      at_least(step.operations, limits.int8_operations_per_second);
      break;
  }
  return most;
}

/// What the hook sees of one run.
struct Recorder {
  Clock::time_point begin;
  std::vector<double> starts, seconds;
  void note(double took) {
    const std::chrono::duration<double> since = Clock::now() - begin;
    starts.push_back(since.count() - took);
    seconds.push_back(took);
  }
};

}  // namespace

Profile profile(Session& session, const CompiledGraph& compiled, const std::vector<c10::IValue>& inputs,
                const ProfileOptions& options) {
  const PlanReport plan = compiled.report(inputs);
  if (!plan.interpreted.empty())
    fail(ErrorCode::kUnsupported, "the graph is interpreted as a whole: {}", plan.interpreted);
  Profile profile;
  profile.runs = std::max(options.runs, 1);
  profile.threads = plan.threads;
  if (options.measure_limits) profile.limits = measure_limits(plan.threads);
  for (int i = 0; i < 3; ++i) session.run(inputs);  // packing, caches
  Recorder recorder;
  session.set_node_hook(
      [&recorder](const Node&, const std::vector<c10::IValue>&, double seconds) { recorder.note(seconds); });
  std::vector<std::vector<double>> seconds(plan.steps.size());
  std::vector<double> totals;
  for (int run = 0; run < profile.runs; ++run) {
    recorder = {.begin = Clock::now()};
    session.run(inputs);
    totals.push_back(std::chrono::duration<double>(Clock::now() - recorder.begin).count());
    for (size_t i = 0; i < seconds.size(); ++i) seconds[i].push_back(recorder.seconds.at(i));
  }
  session.set_node_hook(nullptr);
  profile.seconds = median(totals);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    profile.steps.push_back(
        {plan.steps[i], recorder.starts[i], median(seconds[i]), limit_of(plan.steps[i], profile.limits)});
  }
  return profile;
}

}  // namespace halftone
