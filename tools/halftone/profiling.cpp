#include "profiling.h"

#include <fmt/format.h>

#include <fstream>

#include "console.h"
#include "halftone/error.h"
#include "halftone/profile.h"
#include "halftone/table.h"

namespace halftone::cli {

namespace {

using Json = nlohmann::ordered_json;

void require(bool written, const std::string& path) {
  if (!written) throw Error(ErrorCode::kIo, fmt::format("{}: cannot be written", path));
}

void write_trace(const std::string& path, const Profile& profile) {
  std::ofstream file(path, std::ios::binary);
  file << chrome_trace(profile) << '\n';
  file.close();
  require(bool(file), path);
}

std::string describe_limits(const MachineLimits& limits) {
  if (limits.read_bytes_per_second == 0) return "The limits of this machine are not measured: no AVX2.\n";
  return fmt::format(
      "Limits measured in this run: {:.1f} GB/s read; {:.0f} Gop/s fp32, {:.0f} int8, {:.0f} int8 with "
      "7-bit\n"
      "weights. Operands that stay in the caches may beat the first.\n",
      limits.read_bytes_per_second * 1e-9, limits.float_operations_per_second * 1e-9,
      limits.int8_operations_per_second * 1e-9, limits.int7_operations_per_second * 1e-9);
}

std::string as_text(const Profile& profile) {
  constexpr size_t kMostRows = 20;
  double inside = 0;
  for (const ProfiledStep& step : profile.steps) inside += step.seconds;
  return fmt::format(
             "\n{} steps, {:.3f} ms a run (median of {}, {} threads), {:.3f} ms of it in the steps\n{}\n",
             profile.steps.size(), profile.seconds * 1e3, profile.runs, profile.threads, inside * 1e3,
             describe_limits(profile.limits)) +
         layer_table(profile, kColumns, kMostRows) + "\n" + step_table(profile, kColumns, kMostRows);
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

void check_trace_path(const ProfileRequest& request) {
  if (request.trace_path.empty()) return;
  require(std::ofstream(request.trace_path, std::ios::app).is_open(), request.trace_path);
}

Json profile_model(Session& session, const CompiledModel& compiled, const std::vector<c10::IValue>& inputs,
                   const ProfileRequest& request, bool json, Console& console) {
  const Profile found = profile(session, compiled, inputs);
  if (!request.trace_path.empty()) {
    write_trace(request.trace_path, found);
    console.info(fmt::format("wrote {}: open it in chrome://tracing or ui.perfetto.dev", request.trace_path));
  }
  if (request.tables && !json) console.result(as_text(found));
  return as_json(found);
}

}  // namespace halftone::cli
