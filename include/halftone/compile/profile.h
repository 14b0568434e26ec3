// Profile of a compiled model: the time of each step and layer, beside the limits of the machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "halftone/base/api.h"
#include "halftone/compile/compile.h"

namespace halftone {

/// Measured on the threads that run the model; 0 if this machine has no measure for it.
struct MachineLimits {
  double read_bytes_per_second = 0;
  double float_operations_per_second = 0;  ///< fp32 multiply-add
  double int7_operations_per_second = 0;   ///< integers where weights have 7 bits at most
  double int8_operations_per_second = 0;   ///< integers, exact for 8-bit weights
};

struct ProfiledStep : StepReport {
  double start = 0;          ///< seconds since the last run began
  double seconds = 0;        ///< the median over all runs
  double limit_seconds = 0;  ///< what bandwidth and arithmetic of the machine allow; 0: not known
};

struct Profile {
  std::vector<ProfiledStep> steps;  ///< in the order in which they run
  double seconds = 0;               ///< a whole run, the median
  int runs = 0;
  int threads = 1;
  MachineLimits limits;
};

struct ProfileOptions {
  int runs = 20;
  bool measure_limits = true;  ///< takes about 0.3 s and 192 MB
};

/// Runs `session`, whose executor is `compiled`, on `inputs`. The session's node hook is taken away.
/// kUnsupported if the graph is interpreted as a whole.
HALFTONE_API Profile profile(Session& session, const CompiledGraph& compiled,
                             const std::vector<c10::IValue>& inputs, const ProfileOptions& options = {});

/// The last run for chrome://tracing and Perfetto: a row of steps and a row of layers.
HALFTONE_API std::string chrome_trace(const Profile& profile);

/// Layers by time, most first: calls, time, share of the run, bytes moved, share of the limit.
HALFTONE_API std::string layer_table(const Profile& profile, int width, size_t max_rows);
/// Steps by time, most first.
HALFTONE_API std::string step_table(const Profile& profile, int width, size_t max_rows);

}  // namespace halftone
