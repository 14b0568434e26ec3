// quantize_static(): prepare, calibrate, convert, lower, and the errors of the layers.
#include <algorithm>

#include "base/errors.h"
#include "halftone/ptq/static_int8.h"
#include "tune/static_int8/layer_errors.h"

namespace halftone {
namespace {

using Calls = std::vector<std::vector<c10::IValue>>;

void report_progress(const StaticInt8Options& options, size_t done, size_t total, const char* what) {
  if (options.progress) options.progress(static_cast<int64_t>(done), static_cast<int64_t>(total), what);
}

std::vector<std::vector<c10::IValue>> results_of(const std::shared_ptr<const GraphModule>& module,
                                                 const Calls& calls) {
  Session session(module);
  Calls results;
  for (const std::vector<c10::IValue>& call : calls) {
    session.reset();
    results.push_back(session.run(call));
  }
  return results;
}

}  // namespace

StaticInt8Result quantize_static(const GraphModule& module, const Calls& calls,
                                 const StaticInt8Options& options) {
  if (calls.empty())
    fail(ErrorCode::kInvalidArgument, "{}: static int8 needs calls to calibrate with, and there are none",
         module.name);
  // Calibration, then conversion, lowering and the two runs for errors as one step each.
  const size_t calibrations = options.statistics.empty() ? calls.size() : 0;
  const size_t total = calibrations + 3;
  PreparedModel prepared = prepare(module, options.mapping, calls.front(), options.backend_config);
  for (size_t i = 0; i < calibrations; ++i) {
    report_progress(options, i, total, "calibrating");
    prepared.calibrate(calls[i]);
  }
  if (calibrations == 0) prepared.load_statistics(options.statistics);

  StaticInt8Result result;
  report_progress(options, calibrations, total, "converting");
  ConvertResult converted = convert(prepared);
  result.reference = std::move(converted.module);
  result.patterns = std::move(converted.report);
  report_progress(options, calibrations + 1, total, "lowering");
  LowerResult lowered = lower(*result.reference, {.require_all = options.require_all});
  result.module = std::move(lowered.module);
  result.lowered = std::move(lowered.report);
  result.calibrated = prepared.samples();
  result.statistics = prepared.statistics_json();
  if (options.error_calls > 0) {
    report_progress(options, calibrations + 2, total, "comparing layers");
    const Calls compared(calls.begin(),
                         calls.begin() + static_cast<int64_t>(std::min(options.error_calls, calls.size())));
    const auto exact = prepared.module().clone();
    result.errors = static_layer_errors(exact, result.reference, result.patterns, compared);
    const ResultErrors errors =
        compare_results(results_of(exact, compared), results_of(result.module, compared));
    result.cosine = errors.min_cosine;
    result.differing_not_finite = errors.differing_not_finite;
  }
  report_progress(options, total, total, "done");
  return result;
}

}  // namespace halftone
