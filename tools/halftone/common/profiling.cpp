#include "common/profiling.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/console.h"
#include "halftone/cli/message.h"
#include "halftone/cli/table.h"
#include "halftone/compile/profile.h"
#include "tune_files.h"

namespace halftone::cli {

namespace {

using Json = nlohmann::ordered_json;

std::string describe_limits(const MachineLimits& limits) {
  if (limits.read_bytes_per_second == 0) return "The limits of this machine are not measured: no AVX2.\n";
  return fmt::format(
      "Limits measured in this run: {:.1f} GB/s read; {:.0f} Gop/s fp32, {:.0f} int8, {:.0f} int8 with "
      "7-bit\n"
      "weights. Operands that stay in the caches may beat the first.\n",
      limits.read_bytes_per_second * 1e-9, limits.float_operations_per_second * 1e-9,
      limits.int8_operations_per_second * 1e-9, limits.int7_operations_per_second * 1e-9);
}

// A step that is this much faster than its limit proves the limit wrong; small differences are noise.
constexpr double kBeaten = 1.05;
// This much faster, and the limits were measured while another program had the processor.
constexpr double kDisturbed = 2;
constexpr int kTries = 3;

/// The limits are the best of several tries, before and after runs of the model: a try during which other
/// programs ran says too little.
Profile profile_with_best_limits(Session& session, const CompiledGraph& compiled,
                                 const std::vector<c10::IValue>& inputs) {
  Profile found = profile(session, compiled, inputs);
  for (int i = 1; i < kTries; ++i) {
    const Profile again = profile(session, compiled, inputs);
    MachineLimits& limits = found.limits;
    limits.read_bytes_per_second = std::max(limits.read_bytes_per_second, again.limits.read_bytes_per_second);
    limits.float_operations_per_second =
        std::max(limits.float_operations_per_second, again.limits.float_operations_per_second);
    limits.int7_operations_per_second =
        std::max(limits.int7_operations_per_second, again.limits.int7_operations_per_second);
    limits.int8_operations_per_second =
        std::max(limits.int8_operations_per_second, again.limits.int8_operations_per_second);
    for (size_t k = 0; k < found.steps.size() && k < again.steps.size(); ++k)
      found.steps[k].limit_seconds = std::min(found.steps[k].limit_seconds, again.steps[k].limit_seconds);
  }
  return found;
}

/// Takes away limits that were beaten, and says so; "" if none was.
std::string drop_beaten_limits(Profile& profile) {
  size_t beaten = 0;
  bool disturbed = false;
  for (const ProfiledStep& step : profile.steps) {
    if (step.seconds <= 0 || step.limit_seconds <= kBeaten * step.seconds) continue;
    ++beaten;
    // Bandwidth can be beaten by operands in the caches; arithmetic by nothing.
    disturbed = disturbed || (step.operations > 0 && step.limit_seconds > kDisturbed * step.seconds);
  }
  if (beaten == 0) return "";
  for (ProfiledStep& step : profile.steps) {
    if (disturbed || step.limit_seconds > kBeaten * step.seconds) step.limit_seconds = 0;
  }
  if (disturbed)
    return fmt::format(
        "The limits were beaten by {} of {} steps, so they are none: other programs ran while they "
        "were measured. They are left out.",
        beaten, profile.steps.size());
  return fmt::format("{} of {} steps beat their limit (operands in the caches): theirs is left out.", beaten,
                     profile.steps.size());
}

std::string as_text(const Profile& profile, const std::string& about_limits) {
  constexpr size_t kMaxRows = 20;
  double inside = 0;
  for (const ProfiledStep& step : profile.steps) inside += step.seconds;
  return fmt::format("\n{}, {:.3f} ms a run (median of {}, {}), {:.3f} ms of it in the steps\n{}\n",
                     counted(profile.steps.size(), "step"), profile.seconds * 1e3, profile.runs,
                     counted(profile.threads, "thread"), inside * 1e3,
                     describe_limits(profile.limits) + about_limits) +
         layer_table(profile, kColumns, kMaxRows) + "\n" + step_table(profile, kColumns, kMaxRows);
}

Json as_json(const Profile& profile) {
  Json steps = Json::array();
  for (const ProfiledStep& step : profile.steps) {
    steps.push_back({{"target", step.target},
                     {"layer", step.layer},
                     {"kernel", step.kernel},
                     {"start_ms", step.start * 1e3},
                     {"ms", step.seconds * 1e3},
                     {"limit_ms", step.limit_seconds * 1e3},
                     {"bytes", step.bytes},
                     {"operations", step.operations}});
  }
  return {{"median_ms", profile.seconds * 1e3}, {"runs", profile.runs}, {"steps", std::move(steps)}};
}

}  // namespace

Json profile_model(Session& session, const CompiledGraph& compiled, const std::vector<c10::IValue>& inputs,
                   const ProfileRequest& request, bool json, Console& console) {
  Profile found = profile_with_best_limits(session, compiled, inputs);
  const std::string about_limits = drop_beaten_limits(found);
  if (!request.trace_path.empty()) {
    write_text(request.trace_path, chrome_trace(found) + "\n");
    console.info(fmt::format("wrote {}: open it in chrome://tracing or ui.perfetto.dev", request.trace_path));
  }
  if (request.tables && !json)
    console.result(as_text(found, about_limits.empty() ? "" : wrap_text(about_limits, kColumns)));
  Json report = as_json(found);
  if (!about_limits.empty()) report["limits_note"] = about_limits;
  return report;
}

}  // namespace halftone::cli
