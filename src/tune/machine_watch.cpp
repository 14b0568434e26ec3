#include "tune/machine_watch.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string_view>

namespace halftone {
namespace {

using WatchClock = std::chrono::steady_clock;

constexpr double kSlowProbe = 1.3;
// Threads that sleep need some time to begin; one that is kept from its processor loses a millisecond or
// more.
constexpr double kLateMs = 0.4;
constexpr double kLostShare = 0.1;
constexpr double kLostMs = 0.2;
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

/// What all threads of this process have waited for a processor so far; 0 where the system does not say it.
double waited_ms() {
  double sum = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator task("/proc/self/task", error), end; !error && task != end;
       task.increment(error)) {
    std::ifstream file(task->path() / "schedstat");
    double ran = 0, waited = 0;
    if (file >> ran >> waited) sum += waited * 1e-6;
  }
  return sum;
}

class Watch {
 public:
  bool is_slow() {
    const ProbeTime time = probe_machine();
    chains_.push_back(time.chain);
    if (chains_.size() > kProbesKept) chains_.pop_front();
    const double best = *std::min_element(chains_.begin(), chains_.end());
    return time.chain > kSlowProbe * best || time.late > kLateMs;
  }

 private:
  std::deque<double> chains_;
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
  for (size_t i = 0; i < kProbesKept / 2; ++i) watch->is_slow();
  return [watch]() -> std::function<bool()> {
    const double waited = waited_ms();
    const auto start = WatchClock::now();
    return [watch, waited, start] {
      const double took = ms_since(start);
      const double lost = waited_ms() - waited;
      const bool slow = watch->is_slow();
      return slow || lost > kLostMs + kLostShare * took;
    };
  };
}

bool machine_is_watched() {
  return wanted_watch() != "ignore";
}

}  // namespace halftone
