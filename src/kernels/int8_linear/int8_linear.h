// int8_linear: y = x · Wᵀ with 8-bit activations, 8-bit weights and exact 32-bit sums.
//
//   x [m][k]  floats, quantized here row by row (see quantize_rows.h), or rows that are quantized already:
//             qx, scale sx, zero point zx
//   W [n][k]  s8 with one scale sw for each output channel;
//             weight_bits 8: [-128, 127], weight_bits 7: [-64, 64]
//
//   a[i][j] = Σ_k (qx[i][k] - zx[i]) · qw[j][k]              exact, in 32 bits, the same on every
//                                                            instruction set
//   s[i][j] = float(a[i][j]) · (sx[i] · sw[j])               three roundings
//   y[i][j] = activation(s[i][j] + bias[j]) + residual[i][j] (epilogue.h)
//
// Exactness. No product is ever summed in 16 bits if the sum could saturate:
//   - avx2, 7-bit weights: vpmaddubsw adds two products of u8 and s8; |255 · 64 · 2| = 32640 < 32768.
//   - avx2, 8-bit weights: x is moved to s8 by -128 and split into |x| (u8) and its sign mask m (0 or -1):
//         x · w = |x| · (w ^ m) + |x| · [x < 0],   because w ^ -1 = -w - 1.
//     (w ^ m) stays in s8 for every w, -128 too, and 128 · -128 · 2 = -32768 still fits. The second term
//     does not depend on the column: it is one integer for each row, added at the end.
//   - avx512vnni: vpdpbusd sums in 32 bits.
// A sum fits 32 bits because k is at most kInt8LinearMaxK; intermediate sums may wrap, the result does not.
//
// Bound: y has a relative error of at most 4 roundings against the same formula in double, plus that of the
// activation. Not finite: a row with NaN or infinity gives NaN in every column. m = 0 and n = 0 do nothing;
// k = 0 gives s = 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpu/isa.h"
#include "cpu/parallel_for.h"
#include "kernels/common/epilogue.h"
#include "kernels/int8_linear/pack.h"

namespace halftone::kernels {

/// 255 · 128 · k < 2³¹.
inline constexpr int64_t kInt8LinearMaxK = 65793;

struct Int8LinearProblem {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  int weight_bits = 8;  ///< 8 or 7
};

struct Int8LinearBlock;

struct Int8LinearKernel {
  const char* name;
  Isa isa;
  const char* (*refuse)(const Int8LinearProblem&);
  Int8Tile tile;           ///< how weights must be packed
  int rows;                ///< tallest block of rows
  int bytes_per_row_quad;  ///< packed activations: bytes for four k of one row
  int offset;              ///< what the kernel subtracts from u8 activations before it multiplies
  /// Interleaves `count` <= rows quantized rows for compute(); each byte is xored with `flip` first (0x80
  /// moves s8 to u8). Writes the integer that must be added to each row's sums.
  void (*pack_rows)(const uint8_t* q, int64_t stride, int count, int64_t k, uint8_t flip, uint8_t* packed,
                    int32_t* row_add);
  /// One block of rows times one panel of columns, epilogue included.
  void (*compute)(const Int8LinearBlock& block);
};

/// Best first, scalar last.
std::span<const Int8LinearKernel> int8_linear_kernels();

/// The best kernel of the table at `isa`. Throws kInvalidArgument for a problem that no instruction set can
/// take.
const Int8LinearKernel& choose_int8_linear(const Int8LinearProblem& problem, Isa isa = active_isa());

/// What is multiplied. Exactly one of `x` and `q` is set. Borrowed; strides count elements.
struct Int8LinearArgs {
  const float* x = nullptr;  ///< [m][x_stride]
  int64_t x_stride = 0;
  RowFormat x_format = RowFormat::kU8;  ///< what x is quantized to, or what q holds

  const uint8_t* q = nullptr;  ///< [m][q_stride]
  int64_t q_stride = 0;
  const float* q_scale = nullptr;         ///< [m]
  const int32_t* q_zero_point = nullptr;  ///< [m]; ignored for kS8

  const void* weights = nullptr;  ///< made by pack_int8_weights for kernel.tile
  Epilogue epilogue;
  int32_t* sums = nullptr;  ///< [m][n]: if set, a[i][j] is stored here and the epilogue does nothing
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
};

/// Scratch memory for one call; any alignment.
size_t int8_linear_workspace_bytes(const Int8LinearKernel& kernel, const Int8LinearProblem& problem,
                                   int threads, OutputType type);

/// Runs the kernel, split over tiles of rows and columns. Allocates nothing. Throws kInvalidArgument when the
/// arguments do not fit the problem (weights of another shape or tile, a workspace that is too small, both or
/// neither input).
void int8_linear(const Int8LinearKernel& kernel, const Int8LinearProblem& problem, const Int8LinearArgs& args,
                 ParallelFor& parallel_for);

}  // namespace halftone::kernels
