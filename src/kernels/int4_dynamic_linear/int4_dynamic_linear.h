// int4_dynamic_linear: y = x · Wᵀ with 4-bit weights in groups along k and activations that are quantized to
// 8 bits here.
//
//   x [m][k]  fp32, or bf16 (widened exactly). Each block b of 32 neighbouring activations of a row gets a
//             scale of its own, whatever the group of the weights (the finest choice: one outlier spoils 32
//             values, not a row), as quantize_rows' kS8
//   W [n][k]  integers qw in [-8, 7]; for each channel and each group g of 32, 64, 128 or 256 k a scale sw
//             and optionally a zero point zw, in [-8, 7] or any float
//
//   sx[i][b]   = max(max|x| / 127, FLT_MIN)
//   qx         = clamp(rint(x · (1 / sx)), -127, 127)
//   a[i][j][b] = Σ_{k in b} qx[i][k] · (qw[j][k] - zw[j][g])   exact where zw are integers; else Σ qx · qw and Σ qx are,
//                                                              and a is one fused multiply-add of them
//   s[i][j]    = Σ_b float(a) · (sx[i][b] · sw[j][g])          b ascending, each step one product of the
//                                                              scales and one fused multiply-add
//   then the epilogue (epilogue.h). Integers and s are the same bit for bit on every instruction set.
//
// Exactness. Bytes are multiplied as u = qw + 8 in [0, 15] (unsigned) by qx (signed): two products are at
// most 2 · 15 · 127 = 3810, far from saturation, and the eight pairs of a block are added in 16 bits that
// start at -8 · Σ qx of the same pairs. Steps in between may wrap; the end, Σ qx · qw of 16 products, is
// within 16 · 127 · 8 = 16256. |a| <= 32 · 127 · 15 < 2^24, so float(a) is exact too.
//
// Bounds, with e = 2^-24. Against the formula above in double: |s - exact| <= (k / 32 + 2) · e · Σ_b |a| · sx
// · sw. Against unquantized x: further Σ_k 0.5001 · sx · |qw - zw| · sw. A block with a NaN or an infinity
// has the scale NaN: its row is NaN in every column. Blocks of zeros give 0; denormals keep what steps of
// FLT_MIN can hold. m = 0 and n = 0 do nothing; k = 0 gives s = 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpu/isa.h"
#include "cpu/parallel_for.h"
#include "kernels/common/epilogue.h"
#include "kernels/fp32_linear/fp32_linear.h"
#include "kernels/int4_dynamic_linear/pack.h"

namespace halftone::kernels {

struct Int4DynamicProblem {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  int group = 32;  ///< 32, 64, 128 or 256; the last group is shorter if it does not divide k
};

struct Int4DynamicStep;

struct Int4DynamicKernel {
  const char* name;
  Isa isa;
  const char* (*refuse)(const Int4DynamicProblem&);
  int tile_n;  ///< how weights must be packed; the same as that of fp32_linear's kernel at `isa`, which
               ///< finishes
  int rows;    ///< tallest block of rows
  /// Quantizes k activations to their place, as row `row` of `count`, in k / 32 records (kernels.h).
  void (*prepare)(const float* x, int64_t k, int row, int count, uint8_t* records);
  /// A block of rows times some panels, all of k.
  void (*multiply)(const Int4DynamicStep& step);
};

/// Best first, scalar last.
std::span<const Int4DynamicKernel> int4_dynamic_kernels();

/// The best kernel at `isa`. Throws kInvalidArgument for negative sizes and for a group that is not allowed.
const Int4DynamicKernel& choose_int4_dynamic(const Int4DynamicProblem& problem, Isa isa = active_isa());

/// Scratch memory for one call; any alignment.
size_t int4_dynamic_workspace_bytes(const Int4DynamicKernel& kernel, const Int4DynamicProblem& problem,
                                    int threads, OutputType type);

/// args.weights is made by pack_int4_dynamic for kernel.tile_n. Allocates nothing. Throws kInvalidArgument
/// when the arguments do not fit.
void int4_dynamic_linear(const Int4DynamicKernel& kernel, const Int4DynamicProblem& problem,
                         const Fp32LinearArgs& args, ParallelFor& parallel_for);

}  // namespace halftone::kernels
