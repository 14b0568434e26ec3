#include "kernels/peaks/peaks.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "kernels/peaks/clock.h"

namespace halftone::kernels {
#ifdef HALFTONE_X86
namespace {

double multiply_peak(ParallelFor& parallel_for, int rounds, int64_t (*spin)(int64_t)) {
  constexpr int64_t kSteps = 64 * 600;  // about 0.2 ms: short enough to fit between two interruptions
  double best = 0;
  for (int round = 0; round < rounds; ++round) {
    std::atomic<int64_t> products{0};
    const double start = seconds(parallel_for.threads());
    parallel_for.run(parallel_for.threads(), [&](int64_t, int) { products += spin(kSteps); });
    best = std::max(best,
                    static_cast<double>(products.load()) / (seconds(parallel_for.threads()) - start) * 1e-9);
  }
  return best;
}

double read_peak(ParallelFor& parallel_for, int rounds) {
  constexpr int64_t kBytes = int64_t{192} << 20, kPieces = 96;
  const std::unique_ptr<void, void (*)(void*)> buffer(std::aligned_alloc(64, kBytes), std::free);
  std::memset(buffer.get(), 1, kBytes);
  // Pieces are timed in groups, so that a quiet moment is enough, and in turn, so that none comes from a
  // cache.
  constexpr int64_t kGroup = 16;
  std::atomic<int64_t> sink{0};
  double best = 0;
  for (int round = 0; round < rounds; ++round) {
    for (int64_t group = 0; group < kPieces / kGroup; ++group) {
      const double start = seconds(parallel_for.threads());
      parallel_for.run(kGroup, [&](int64_t i, int) {
        const char* at = static_cast<const char*>(buffer.get()) + (group * kGroup + i) * (kBytes / kPieces);
        sink += read_memory(at, kBytes / kPieces);
      });
      best = std::max(best, static_cast<double>(kGroup * (kBytes / kPieces)) /
                                (seconds(parallel_for.threads()) - start) * 1e-9);
    }
  }
  return best;
}

}  // namespace
#endif

Peaks larger(const Peaks& a, const Peaks& b) {
  return {std::max(a.read_gbs, b.read_gbs),       std::max(a.chain_gmac, b.chain_gmac),
          std::max(a.exact8_gmac, b.exact8_gmac), std::max(a.exact7_gmac, b.exact7_gmac),
          std::max(a.deep2_gmac, b.deep2_gmac),   std::max(a.deep8_gmac, b.deep8_gmac),
          std::max(a.int4_gmac, b.int4_gmac),     std::max(a.fma_gmac, b.fma_gmac)};
}

#ifdef HALFTONE_X86
Peaks measure_peaks(ParallelFor& parallel_for, int rounds, Isa isa) {
  Peaks peaks;
  if (isa < Isa::kAvx2) return peaks;
  peaks.chain_gmac = multiply_peak(parallel_for, rounds * 20, spin_chain_avx2);
  peaks.deep2_gmac = multiply_peak(parallel_for, rounds * 20, spin_deep2_avx2);
  peaks.deep8_gmac = multiply_peak(parallel_for, rounds * 20, spin_deep8_avx2);
  if (isa == Isa::kAvx512Vnni) {
    peaks.exact8_gmac = multiply_peak(parallel_for, rounds * 20, spin_vnni_avx512vnni);
    peaks.exact7_gmac = peaks.int4_gmac = peaks.exact8_gmac;
    peaks.fma_gmac = multiply_peak(parallel_for, rounds * 20, spin_fma_avx512vnni);
  } else {
    peaks.exact8_gmac = multiply_peak(parallel_for, rounds * 20, spin_exact8_avx2);
    peaks.exact7_gmac = peaks.chain_gmac;
    peaks.int4_gmac = peaks.deep8_gmac;
    peaks.fma_gmac = multiply_peak(parallel_for, rounds * 20, spin_fma_avx2);
  }
  peaks.read_gbs = read_peak(parallel_for, rounds);
  return peaks;
}
#else
Peaks measure_peaks(ParallelFor&, int, Isa) {
  return {};
}
#endif

int64_t read_memory(const void* data, int64_t bytes) {
#ifdef HALFTONE_X86
  if (machine_isa() >= Isa::kAvx2) return read_avx2(data, bytes);
#endif
  int64_t sum = 0, word = 0;
  for (int64_t i = 0; i < bytes; i += int64_t{sizeof(word)}) {
    std::memcpy(&word, static_cast<const char*>(data) + i, sizeof(word));
    sum ^= word;
  }
  return sum;
}

}  // namespace halftone::kernels
