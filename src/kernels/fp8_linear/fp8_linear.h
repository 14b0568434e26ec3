// fp8_linear: y = x · Wᵀ with 8-bit floating-point weights, one scale for each output channel (or for all).
//
//   x [m][k]  fp32 (kFloat32: or bf16)
//   W [n][k]  bytes qw in e4m3fn or e5m2 (float8.h), scale sw [n]
//
//   kFloat32:      s[i][j] = Σ_k x[i][k] · (qw[j][k] · sw[j])              the activations are kept
//   kDynamicE4m3:  s[i][j] = Σ_k (qx[i][k] · sx[i]) · (qw[j][k] · sw[j])   the activations are rounded,
//                  sx[i]    = max(max_k |x[i][k]| / 448, FLT_MIN)          row by row
//                  qx[i][k] = e4m3fn(x[i][k] / sx[i])
//   then the epilogue (epilogue.h)
//
// Bound, with e = 2^-24 and X = x or qx · sx:  |s - exact| <= (k + 6) · e · Σ_k |X · qw · sw|, exact from the
// rounded activations (plus k · 2^-140 · max(1, sw), which counts only among denormals). What the rounding
// itself costs: |x - qx · sx| <= 0.0626 · |x| + 0.00098 · sx; sx and qx are the same on every instruction
// set. A zero row has sx = FLT_MIN and qx = 0. NaN and infinities in x: kFloat32 takes them where IEEE
// arithmetic does; with kDynamicE4m3 such a row comes out as NaN. m = 0 and n = 0 do nothing; k = 0 gives
// s = 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpu/isa.h"
#include "cpu/parallel_for.h"
#include "kernels/common/epilogue.h"
#include "kernels/fp32_linear/fp32_linear.h"
#include "kernels/fp8_linear/pack.h"

namespace halftone::kernels {

enum class Fp8Activations : int { kFloat32, kDynamicE4m3 };

struct Fp8LinearProblem {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  Fp8Activations activations = Fp8Activations::kFloat32;
};

struct Fp8LinearKernel {
  const char* name;
  Isa isa;
  const char* (*refuse)(const Fp8LinearProblem&);
  int tile_n;  ///< how weights must be packed; the same as that of fp32_linear's kernel at `isa`, which
               ///< multiplies
  /// As in Fp32Panels, on a PackedPanels.
  void (*expand)(const void* packed, int64_t panel, int64_t k, int64_t steps, float* out);
  void (*multiply_rows)(const void* packed, const float* rows, int count, int64_t panel, int panels,
                        float* sums);
  /// y = qx · sx of one row, NaN throughout if the row is not finite; returns sx (then NaN).
  float (*round_row)(const float* x, int64_t k, float* y);
  /// Optional, by Float8Format, for as many rows as one block has: bytes become floats in registers. The
  /// factors are left to the sums.
  void (*multiply[2])(const Fp32LinearStep& step);
};

/// Best first, scalar last.
std::span<const Fp8LinearKernel> fp8_linear_kernels();

/// The best kernel at `isa`. Throws kInvalidArgument for negative sizes.
const Fp8LinearKernel& choose_fp8_linear(const Fp8LinearProblem& problem, Isa isa = active_isa());

/// Scratch memory for one call; any alignment.
size_t fp8_linear_workspace_bytes(const Fp8LinearProblem& problem, int threads, OutputType type);

/// args.weights is made by pack_fp8_weights for kernel.tile_n. Allocates nothing. Throws kInvalidArgument
/// when the arguments do not fit.
void fp8_linear(const Fp8LinearKernel& kernel, const Fp8LinearProblem& problem, const Fp32LinearArgs& args,
                ParallelFor& parallel_for);

}  // namespace halftone::kernels
