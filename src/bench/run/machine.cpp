// The machine that a suite ran on.
#include "tune/measure/machine.h"

#include <ATen/Parallel.h>
#include <sys/utsname.h>

#include <fstream>

#include "base/errors.h"
#include "cpu/isa.h"
#include "halftone/base/version.h"
#include "halftone/bench/bench.h"

namespace halftone {
namespace {

/// "Debian GNU/Linux 12 (bookworm), Linux 6.1.0 x86_64"
std::string operating_system() {
  std::string distribution;
  std::ifstream release("/etc/os-release");
  for (std::string line; std::getline(release, line);) {
    constexpr std::string_view kKey = "PRETTY_NAME=";
    if (!line.starts_with(kKey)) continue;
    distribution = line.substr(kKey.size());
    std::erase(distribution, '"');
  }
  utsname names{};
  if (uname(&names) != 0) return distribution;
  const std::string kernel = fmt::format("{} {} {}", names.sysname, names.release, names.machine);
  return distribution.empty() ? kernel : fmt::format("{}, {}", distribution, kernel);
}

}  // namespace

BenchMachine this_machine() {
  BenchMachine machine;
  machine.cpu = cpu_name();
  machine.isa = to_string(active_isa());
  machine.threads = at::get_num_threads();
  machine.os = operating_system();
  machine.date = utc_now();
#if defined(__clang__)
  const std::string compiler = fmt::format("clang {}", __clang_version__);
#else
  const std::string compiler = fmt::format("g++ {}", __VERSION__);
#endif
  machine.versions = {{"halftone", version()}, {"torch", torch_version()}, {"compiler", compiler}};
  return machine;
}

}  // namespace halftone
