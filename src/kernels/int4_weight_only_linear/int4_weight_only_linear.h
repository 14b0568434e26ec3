// int4_weight_only_linear: y = x · Wᵀ with fp32 or bf16 activations and 4-bit weights in groups along k.
//
//   x [m][k]  fp32 or bf16
//   W [n][k]  integers qw in [-8, 7]; for each channel and each group g of 32, 64, 128 or 256 neighbouring k
//             a scale sw and optionally a zero point zw, in [-8, 7] or any float
//             (formats that count from 0 to 15: subtract 8 from both)
//
//   s[i][j] = Σ_k x[i][k] · (qw[j][k] - zw[j][g]) · sw[j][g];  then the epilogue (epilogue.h)
//
// The activations are never quantized; in bfloat16 they are widened exactly. Bound, with e = 2^-24:
//   |s - exact| <= (k + 8) · e · Σ_k |x| · (|qw| + |zw| + 16) · sw + k · 2^-122 · max sw,
// the last only among activations below 2^-102, because kernels count from 0 to 15 and scale x down by up to
// 2^24. NaN and infinities go where IEEE arithmetic takes them. m = 0 and n = 0 do nothing; k = 0 gives
// s = 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpu/isa.h"
#include "cpu/parallel_for.h"
#include "kernels/common/epilogue.h"
#include "kernels/fp32_linear/fp32_linear.h"
#include "kernels/int4_weight_only_linear/pack.h"

namespace halftone::kernels {

struct Int4WeightOnlyProblem {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  int group = 32;  ///< 32, 64, 128 or 256; the last group is shorter if it does not divide k
};

struct Int4WeightOnlyKernel {
  const char* name;
  Isa isa;
  const char* (*refuse)(const Int4WeightOnlyProblem&);
  int tile_n;  ///< how weights must be packed; the same as that of fp32_linear's kernel at `isa`, which
               ///< multiplies
  /// As in Fp32Panels, on an Int4WeightOnlyPacked.
  void (*expand)(const void* packed, int64_t panel, int64_t k, int64_t steps, float* out);
  void (*multiply_rows)(const void* packed, const float* rows, int count, int64_t panel, int panels,
                        float* sums);
  void (*pack_rows)(const void* packed, const float* x, int64_t stride, int count, int64_t k, int64_t steps,
                    float* rows);
  int fused_rows;  ///< that multiply_rows takes; more are faster expanded
};

/// Best first, scalar last.
std::span<const Int4WeightOnlyKernel> int4_weight_only_kernels();

/// The best kernel at `isa`. Throws kInvalidArgument for negative sizes and for a group that is not allowed.
const Int4WeightOnlyKernel& choose_int4_weight_only(const Int4WeightOnlyProblem& problem,
                                                    Isa isa = active_isa());

/// Scratch memory for one call; any alignment.
size_t int4_weight_only_workspace_bytes(const Int4WeightOnlyProblem& problem, int threads, OutputType type);

/// args.weights is made by pack_int4_weight_only for kernel.tile_n. Allocates nothing. Throws
/// kInvalidArgument when the arguments do not fit.
void int4_weight_only_linear(const Int4WeightOnlyKernel& kernel, const Int4WeightOnlyProblem& problem,
                             const Fp32LinearArgs& args, ParallelFor& parallel_for);

}  // namespace halftone::kernels
