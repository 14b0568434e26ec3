#include "tune/measure/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <string_view>

namespace halftone {
namespace {

/// A line "VmHWM:   123 kB" in bytes; nothing if there is none.
std::optional<int64_t> status_bytes(std::string_view field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(field)) continue;
    const size_t digits = line.find_first_of("0123456789");
    if (digits == std::string::npos) return std::nullopt;
    return std::stoll(line.substr(digits)) * 1024;
  }
  return std::nullopt;
}

}  // namespace

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string name = "unknown", family, model;
  for (std::string line; std::getline(file, line) && !line.empty();) {
    const std::string value = line.substr(std::min(line.size(), line.find(':') + 2));
    if (line.starts_with("model name")) name = value;
    if (line.starts_with("cpu family")) family = value;
    if (line.starts_with("model\t")) model = value;
  }
  return family.empty() ? name : fmt::format("{} (family {}, model {})", name, family, model);
}

std::string utc_now() {
  std::tm time{};
  const std::time_t now = std::time(nullptr);
  gmtime_r(&now, &time);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", time.tm_year + 1900, time.tm_mon + 1,
                     time.tm_mday, time.tm_hour, time.tm_min, time.tm_sec);
}

PeakMemory::PeakMemory() {
  std::ofstream marks("/proc/self/clear_refs");
  marks << "5" << std::flush;  // sets VmHWM back to what is resident
  if (marks) before_ = status_bytes("VmRSS:");
}

std::optional<int64_t> PeakMemory::growth() const {
  const auto peak = status_bytes("VmHWM:");
  if (!before_ || !peak) return std::nullopt;
  return std::max<int64_t>(0, *peak - *before_);
}

}  // namespace halftone
