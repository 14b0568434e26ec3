// int8_weight_only_linear: y = x · Wᵀ with fp32 or bf16 activations and s8 weights, one scale for each output
// channel.
//
//   x [m][k] fp32 or bf16;  W [n][k] s8 in [-128, 127], scale sw [n];  s[i][j] = Σ_k x[i][k] · (qw[j][k] ·
//   sw[j]); then the epilogue (epilogue.h)
//
// The activations are never quantized; in bfloat16 they are widened exactly. Bound, with e = 2^-24:  |s -
// exact| <= (k + 5) · e · Σ_k |x · qw · sw|. NaN and infinities go where IEEE arithmetic takes them. m = 0
// and n = 0 do nothing; k = 0 gives s = 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpu/isa.h"
#include "cpu/parallel_for.h"
#include "kernels/common/epilogue.h"
#include "kernels/fp32_linear/fp32_linear.h"
#include "kernels/int8_weight_only_linear/pack.h"

namespace halftone::kernels {

struct Int8WeightOnlyProblem {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
};

struct Int8WeightOnlyKernel {
  const char* name;
  Isa isa;
  const char* (*refuse)(const Int8WeightOnlyProblem&);
  int tile_n;  ///< how weights must be packed; the same as that of fp32_linear's kernel at `isa`, which
               ///< multiplies
  /// As in Fp32Panels, on a PackedPanels.
  void (*expand)(const void* packed, int64_t panel, int64_t k, int64_t steps, float* out);
  void (*multiply_rows)(const void* packed, const float* rows, int count, int64_t panel, int panels,
                        float* sums);
  /// Optional, instead of `expand`: bytes become floats in registers. The factors are left to the sums.
  void (*multiply)(const Fp32LinearStep& step);
  int64_t register_rows;  ///< for which `multiply` is the faster one
};

/// Best first, scalar last.
std::span<const Int8WeightOnlyKernel> int8_weight_only_kernels();

/// The best kernel at `isa`. Throws kInvalidArgument for negative sizes.
const Int8WeightOnlyKernel& choose_int8_weight_only(const Int8WeightOnlyProblem& problem,
                                                    Isa isa = active_isa());

/// Scratch memory for one call; any alignment.
size_t int8_weight_only_workspace_bytes(const Int8WeightOnlyProblem& problem, int threads, OutputType type);

/// args.weights is made by pack_int8_weight_only for kernel.tile_n. Allocates nothing. Throws
/// kInvalidArgument when the arguments do not fit.
void int8_weight_only_linear(const Int8WeightOnlyKernel& kernel, const Int8WeightOnlyProblem& problem,
                             const Fp32LinearArgs& args, ParallelFor& parallel_for);

}  // namespace halftone::kernels
