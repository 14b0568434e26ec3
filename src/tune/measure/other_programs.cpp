#include "tune/measure/other_programs.h"

#include <unistd.h>

#include <charconv>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace halftone {
namespace {

constexpr double kBusyShare = 0.05;

/// All processes but this one that are to be seen.
std::vector<pid_t> other_processes() {
  std::vector<pid_t> found;
  std::error_code error;
  const std::filesystem::directory_iterator end;
  for (std::filesystem::directory_iterator entry("/proc", error); !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    pid_t process = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), process);
    if (parsed.ec == std::errc() && parsed.ptr == name.data() + name.size() && process != getpid())
      found.push_back(process);
  }
  return found;
}

/// Of all its threads, up to this moment, in milliseconds; nothing if it has ended.
std::optional<double> processor_ms(pid_t process) {
  clockid_t clock{};
  timespec used{};
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &used) != 0) return std::nullopt;
  return static_cast<double>(used.tv_sec) * 1e3 + static_cast<double>(used.tv_nsec) * 1e-6;
}

}  // namespace

void OtherPrograms::look() {
  const Clock::time_point now = Clock::now();
  const double elapsed = std::chrono::duration<double, std::milli>(now - looked_).count();
  std::unordered_map<pid_t, Process> seen;
  for (const pid_t process : other_processes()) {
    const std::optional<double> used = processor_ms(process);
    if (!used) continue;
    const auto known = processes_.find(process);
    const bool is_new = known == processes_.end();
    const bool busy = !is_new && *used - known->second.at_look > kBusyShare * elapsed;
    if (busy || (!is_new && known->second.busy)) busy_ms_ += *used - known->second.used;
    seen[process] = {*used, *used, busy};
  }
  processes_ = std::move(seen);
  looked_ = now;
}

double OtherPrograms::busy_ms() {
  for (auto& [process, known] : processes_) {
    if (!known.busy) continue;
    const std::optional<double> used = processor_ms(process);
    if (!used) continue;
    busy_ms_ += *used - known.used;
    known.used = *used;
  }
  return busy_ms_;
}

}  // namespace halftone
