// The machine that is measured: its name, and the memory of this process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace halftone {

/// "AMD EPYC 7763 64-Core Processor (family 25, model 1)"; "unknown" where /proc does not say it.
std::string cpu_name();

/// Now, as "2026-01-31T12:00:00Z".
std::string utc_now();

/// The most that was resident while it lived, over what was resident at its beginning. The kernel's mark is
/// of the whole process: other threads' memory counts too.
class PeakMemory {
 public:
  PeakMemory();
  /// Nothing if the mark cannot be set back or read.
  std::optional<int64_t> growth() const;

 private:
  std::optional<int64_t> before_;
};

}  // namespace halftone
