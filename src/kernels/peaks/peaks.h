// The machine's limits, measured by the program that compares with them, in the same run.
#pragma once

#include "cpu/splitter.h"

namespace halftone::kernels {

struct Peaks {
  double read_gbs = 0;  ///< sequential reads of a buffer far larger than the caches
  /// vpmaddubsw + vpmaddwd + vpaddd: exact for 7-bit weights, saturating for 8-bit ones.
  double chain_gmac = 0;
  double exact8_gmac = 0;  ///< the same with the xor that makes 8-bit weights exact
  /// Two and eight results of vpmaddubsw added in 16 bits before vpmaddwd: exact for operands of 7 bits, and
  /// for weights that are small enough (int8_conv/pack.h).
  double deep2_gmac = 0, deep8_gmac = 0;
  double fma_gmac = 0;  ///< fp32 fused multiply-add
};

/// The larger of each.
Peaks larger(const Peaks& a, const Peaks& b);

/// Best of `rounds` short rounds on all threads of the splitter. All are 0 without AVX2: not measured.
/// Takes about 20 ms a round and 192 MB while it runs.
Peaks measure_peaks(Splitter& splitter, int rounds);

// Compiled for AVX2; each runs `steps` steps (a multiple of 64) of the sequence and returns the products it
// made.
int64_t spin_chain_avx2(int64_t steps);
int64_t spin_exact8_avx2(int64_t steps);
int64_t spin_deep2_avx2(int64_t steps);
int64_t spin_deep8_avx2(int64_t steps);
int64_t spin_fma_avx2(int64_t steps);
/// Reads `bytes` (a multiple of 256) and returns something that depends on them.
int64_t read_avx2(const void* data, int64_t bytes);

}  // namespace halftone::kernels
