#include "rounds.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string_view>

#include "cpu/isa.h"
#include "kernels/peaks/clock.h"

namespace halftone::bench {
namespace {

constexpr double kDisturbed = 0.85;
constexpr int kTries = 3;  // runs for each round that is wanted

// Of all threads together, best of a few tries of 0.2 ms: one that was interrupted says nothing.
double multiply_adds(ParallelFor& parallel_for) {
#ifdef HALFTONE_X86
  constexpr int64_t kSteps = 64 * 600;
  // The loop that the peak was measured with: 256-bit ones reach half of it where there are two 512-bit
  // units.
  const auto spin = active_isa() == Isa::kAvx512Vnni ? kernels::spin_fma_avx512vnni : kernels::spin_fma_avx2;
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    std::atomic<int64_t> products{0};
    const double start = kernels::seconds(parallel_for.threads());
    parallel_for.run(parallel_for.threads(), [&](int64_t, int) { products += spin(kSteps); });
    const double took = kernels::seconds(parallel_for.threads()) - start;
    best = std::max(best, static_cast<double>(products.load()) / took * 1e-9);
  }
  return best;
#else
  return parallel_for.threads();
#endif
}

}  // namespace

Rounds run_rounds(ParallelFor& parallel_for, const Peaks& peaks, int rounds, std::vector<Sample>& samples,
                  const std::function<void()>& round) {
  const char* asked = std::getenv("HALFTONE_BUSY");
  const std::string_view busy = asked != nullptr ? asked : "";
  const bool check = parallel_for.threads() > 1 && peaks.fma_gmac > 0 && busy != "ignore";
  const auto undisturbed = [&] {
    return busy != "always" && (!check || multiply_adds(parallel_for) >= kDisturbed * peaks.fma_gmac);
  };
  Rounds done{.wanted = rounds};
  while (done.kept < rounds && done.kept + done.dropped < kTries * rounds) {
    const bool before = undisturbed();
    round();
    if (before && undisturbed()) {
      ++done.kept;
      for (Sample& sample : samples) sample.end_round();
    } else {
      ++done.dropped;
      for (Sample& sample : samples) sample.drop_round();
    }
  }
  return done;
}

}  // namespace halftone::bench
