// The processor time of other programs, exact enough for a turn of a millisecond.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <unordered_map>

namespace halftone {

/// Knows the processes that keep a processor busy, and reads their clocks: the system's own counts
/// (/proc/stat) are in ticks of 4 to 10 ms, in which a turn has begun and ended. Linux only: elsewhere there
/// are none.
class OtherPrograms {
 public:
  OtherPrograms() { look(); }

  /// Looks for busy processes among all: those that used more than a twentieth of the time since the last
  /// look. Some tenths of a millisecond.
  void look();
  /// Milliseconds that busy processes have used since this object was made, those included that each used
  /// between two looks before it was known to be busy.
  double busy_ms();

 private:
  using Clock = std::chrono::steady_clock;
  struct Process {
    double at_look = 0;  ///< ms that it had used at the last look
    double used = 0;     ///< up to here they are in busy_ms_, if it is busy
    bool busy = false;
  };
  std::unordered_map<pid_t, Process> processes_;
  Clock::time_point looked_;
  double busy_ms_ = 0;
};

}  // namespace halftone
