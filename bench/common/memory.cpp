#include "common/memory.h"

#include <fstream>
#include <stdexcept>
#include <string_view>

namespace halftone::bench {
namespace {

/// "Rss:   12 kB" as MB; kB there are 1024 bytes.
double field_mb(const std::string& line) {
  return std::stod(line.substr(line.find(':') + 1)) * 1024 / 1e6;
}

/// The first line of a mapping, "7f12…-7f34… r--p …", not one of its fields, "Rss: …".
bool begins_mapping(const std::string& line) {
  return line.find('-') < line.find(' ');
}

}  // namespace

double peak_mb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return field_mb(line);
  }
  throw std::runtime_error("/proc/self/status has no VmHWM");
}

MemoryUse memory_use(const std::string& file) {
  std::ifstream maps("/proc/self/smaps");
  if (!maps) throw std::runtime_error("/proc/self/smaps cannot be read");
  MemoryUse use;
  bool is_file = false;
  for (std::string line; std::getline(maps, line);) {
    if (begins_mapping(line)) {
      is_file = line.ends_with(file);
    } else if (line.starts_with("Private_Dirty:")) {
      use.private_mb += field_mb(line);
      if (is_file) use.mapped_mb -= field_mb(line);  // counted once
    } else if (line.starts_with("Rss:") && is_file) {
      use.mapped_mb += field_mb(line);
    }
  }
  return use;
}

}  // namespace halftone::bench
