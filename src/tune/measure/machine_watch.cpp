#include "tune/measure/machine_watch.h"

#include <ATen/Parallel.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>

#include "tune/measure/other_programs.h"

namespace halftone {
namespace {

using WatchClock = std::chrono::steady_clock;

constexpr double kSlowProbe = 1.3;
// Threads that sleep need some time to begin; one that is kept from its processor loses a millisecond or
// more.
constexpr double kLateMs = 0.4;
// Of one processor, in a short turn: it lies between two time slices of another program or it does not. Long
// turns have many slices in them, as those of all candidates have, so they take what a moment may have.
constexpr double kShortTurnShare = 0.05;
constexpr double kShortTurnMs = 10;
// Of one processor, in a moment. Two ticks are lost or found at its ends.
constexpr double kOthersShare = 0.2;
constexpr double kMomentMs = 250;
// The best of the last ones and not of all: clocks go down when a machine gets warm.
constexpr size_t kProbesKept = 64;
constexpr int kProbeSteps = 40000;

double ms_since(WatchClock::time_point start) {
  return std::chrono::duration<double, std::milli>(WatchClock::now() - start).count();
}

/// Eight chains of multiply-adds that no compiler can shorten.
double chain_ms() {
  const auto start = WatchClock::now();
  std::array<double, 8> sums = {1, 2, 3, 4, 5, 6, 7, 8};
  for (int i = 0; i < kProbeSteps; ++i) {
    for (double& sum : sums) sum = sum * 0.999999 + 1e-6;
  }
  volatile double sink = 0;
  for (const double sum : sums) sink = sink + sum;
  return ms_since(start);
}

struct ProbeTime {
  double chain = 0;  ///< ms of the slowest thread
  double late = 0;   ///< ms beside that: waiting for threads to begin and to end
};

ProbeTime probe_machine() {
  const int threads = at::get_num_threads();
  std::vector<double> times(static_cast<size_t>(threads));
  const auto start = WatchClock::now();
  at::parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) times[static_cast<size_t>(i)] = chain_ms();
  });
  const double all = ms_since(start);
  const double chain = *std::max_element(times.begin(), times.end());
  return {chain, all - chain};
}

/// Processor time that all but this process have used so far, and what a hypervisor took; 0 if the system
/// does not say it. What threads of this process waited for a processor would be a finer measure, but they
/// also wait for each other: ATen's threads and Halftone's spin in turns.
double others_ms() {
  std::ifstream file("/proc/stat");
  std::string name;
  double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, interrupts = 0, soft = 0, stolen = 0;
  if (!(file >> name >> user >> nice >> system >> idle >> waiting >> interrupts >> soft >> stolen)) return 0;
  const double tick = 1000.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
  timespec own{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
  const double own_ms = static_cast<double>(own.tv_sec) * 1e3 + static_cast<double>(own.tv_nsec) * 1e-6;
  return (user + nice + system + interrupts + soft + stolen) * tick - own_ms;
}

class Watch {
 public:
  Watch() {
    for (size_t i = 0; i < kProbesKept / 2; ++i) is_slow();
    others_.look();  // who was busy during the probes
  }

  /// Before a turn; what it returns is for was_disturbed().
  double begin_turn() {
    if (ms_since(looked_) > kMomentMs) {
      others_.look();
      looked_ = WatchClock::now();
    }
    began_ = WatchClock::now();
    return others_.busy_ms();
  }

  bool was_disturbed(double busy_before) {
    const double busy = others_.busy_ms() - busy_before;
    const double took = ms_since(began_);
    const bool shared = busy > (took < kShortTurnMs ? kShortTurnShare : kOthersShare) * took;
    const bool slow = is_slow();
    return unknown_ran() || slow || shared;
  }

 private:
  struct Moment {
    double at = 0;
    double unknown = 0;  ///< ms
  };

  bool is_slow() {
    const ProbeTime time = probe_machine();
    chains_.push_back(time.chain);
    if (chains_.size() > kProbesKept) chains_.pop_front();
    const double best = *std::min_element(chains_.begin(), chains_.end());
    return time.chain > kSlowProbe * best || time.late > kLateMs;
  }

  /// Whether the processors were used by others than those whose clocks are read: programs of other
  /// containers, many short ones, the hypervisor. The system counts in ticks of 10 ms, so that a moment is
  /// many of them.
  bool unknown_ran() {
    const Moment now{ms_since(start_), others_ms() - others_.busy_ms()};
    while (moments_.size() > 1 && moments_[1].at <= now.at - kMomentMs) moments_.pop_front();
    moments_.push_back(now);
    const double took = std::max(now.at - moments_.front().at, kMomentMs);
    return now.unknown - moments_.front().unknown > kOthersShare * took;
  }

  WatchClock::time_point start_ = WatchClock::now();
  WatchClock::time_point looked_ = start_;
  WatchClock::time_point began_ = start_;
  OtherPrograms others_;
  std::deque<double> chains_;
  std::deque<Moment> moments_;
};

std::string_view wanted_watch() {
  const char* value = std::getenv("HALFTONE_BUSY");
  return value != nullptr ? value : "";
}

}  // namespace

MachineWatch watch_this_machine() {
  if (!machine_is_watched()) return {};
  if (wanted_watch() == "always") return [] { return [] { return true; }; };
  const auto watch = std::make_shared<Watch>();
  return [watch]() -> std::function<bool()> {
    return [watch, busy = watch->begin_turn()] { return watch->was_disturbed(busy); };
  };
}

bool machine_is_watched() {
  return wanted_watch() != "ignore";
}

}  // namespace halftone
