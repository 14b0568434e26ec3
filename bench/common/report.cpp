#include "common/report.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>

#include "halftone/cli/kernels.h"

namespace halftone::bench {

void print_measurements(const std::vector<int64_t>& shape, const std::vector<Measurement>& rows, bool json) {
  const std::string label = fmt::format("{}", fmt::join(shape, ", "));
  for (const Measurement& row : rows) {
    if (json) {
      fmt::print(
          R"({{"peer": "halftone-{}", "case": [{}], "ms": {:.4f}, "p10": {:.4f}, "p90": {:.4f}, "cos": {:.5f}}})"
          "\n",
          row.name, label, row.median, row.p10, row.p90, row.cosine);
    } else {
      fmt::print("({:>7})  {:16} {:9.3f} ms  (p10 {:8.3f}, p90 {:8.3f})  x {:5.2f}   cosine {:.5f}\n", label,
                 row.name, row.median, row.p10, row.p90, rows[0].median / row.median, row.cosine);
    }
  }
  std::fflush(stdout);
}

void print_compile_times(const std::vector<Candidate>& candidates) {
  fmt::print("{}, {} threads; compiled in", active_instruction_set(), at::get_num_threads());
  for (const Candidate& each : candidates) {
    if (each.compiled) fmt::print(" {} {:.0f} ms", each.name, each.compile_ms);
  }
  fmt::print("\n");
}

}  // namespace halftone::bench
