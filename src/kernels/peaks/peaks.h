// The machine's limits, measured by the program that compares with them, in the same run.
#pragma once

#include "cpu/isa.h"
#include "cpu/parallel_for.h"

namespace halftone::kernels {

struct Peaks {
  double read_gbs = 0;  ///< sequential reads of a buffer far larger than the caches
  /// vpmaddubsw + vpmaddwd + vpaddd: exact for 7-bit weights, saturating for 8-bit ones.
  double chain_gmac = 0;
  /// What the level's kernels do for 8-bit weights: avx2 the chain with the xor that makes them exact,
  /// avx512vnni vpdpbusd.
  double exact8_gmac = 0;
  double exact7_gmac = 0;  ///< the same for 7-bit weights: the chain itself, or vpdpbusd
  /// Two and eight results of vpmaddubsw added in 16 bits before vpmaddwd: exact for operands of 7 bits, and
  /// for weights that are small enough (int8_conv/pack.h).
  double deep2_gmac = 0, deep8_gmac = 0;
  double int4_gmac = 0;  ///< int4_dynamic_linear's: as deep8, or vpdpbusd
  double fma_gmac = 0;   ///< fp32 fused multiply-add
};

/// The larger of each.
Peaks larger(const Peaks& a, const Peaks& b);

/// Best of `rounds` short rounds on all threads of the ParallelFor, with the sequences of the kernels at `isa`.
/// All are 0 without AVX2: not measured.
/// Takes about 20 ms a round and 192 MB while it runs.
Peaks measure_peaks(ParallelFor& parallel_for, int rounds, Isa isa = active_isa());

// Compiled for their level; each runs `steps` steps (a multiple of 64) of the sequence and returns the
// products it made.
int64_t spin_chain_avx2(int64_t steps);
int64_t spin_exact8_avx2(int64_t steps);
int64_t spin_deep2_avx2(int64_t steps);
int64_t spin_deep8_avx2(int64_t steps);
int64_t spin_fma_avx2(int64_t steps);
int64_t spin_vnni_avx512vnni(int64_t steps);
int64_t spin_fma_avx512vnni(int64_t steps);
/// Reads `bytes` (a multiple of 256) and returns something that depends on them.
int64_t read_avx2(const void* data, int64_t bytes);
/// The same with what the machine has.
int64_t read_memory(const void* data, int64_t bytes);

}  // namespace halftone::kernels
