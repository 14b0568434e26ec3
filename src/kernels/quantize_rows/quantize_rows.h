// quantize_rows: each row of floats to 8-bit integers with its own scale (and zero point).
//
//   kU8:  lo         = min(0, min x),  hi = max(0, max x)
//         scale      = max(hi/255 - lo/255, FLT_MIN)
//         zero_point = rint(-lo / scale)
//         q          = clamp(rint(x * (1/scale)) + zero_point, 0, 255)
//   kS8:  scale      = max(max|x| / 127, FLT_MIN)
//         zero_point = 0
//         q          = clamp(rint(x * (1/scale)), -127, 127)
//
// rint rounds to nearest even. Every operation is a single IEEE operation in this order, so the bytes, scales
// and zero points are the same on every instruction set. hi/255 - lo/255 cannot overflow.
//
// Bound, for every finite row (the zero is exact):
//   |x - scale * (q - zero_point)| <= kQuantizeRowsBound * scale
// A row of zeros gives scale FLT_MIN and bytes equal to the zero point; denormal rows keep what FLT_MIN steps
// can hold. A row with a NaN or an infinity gives scale NaN, zero point 0 and bytes 0, so that results
// computed from it are NaN and never a plausible number. k = 0 counts as a row of zeros.
#pragma once

#include <cstdint>
#include <span>

#include "cpu/isa.h"
#include "cpu/parallel_for.h"
#include "kernels/common/epilogue.h"

namespace halftone::kernels {

inline constexpr double kQuantizeRowsBound = 0.5001;

struct RowScale {
  float scale;
  int32_t zero_point;
};

struct QuantizeRowsProblem {
  int64_t rows = 0;
  int64_t k = 0;
};

struct QuantizeRowsKernel {
  const char* name;
  Isa isa;
  const char* (*refuse)(const QuantizeRowsProblem&);
  /// One row of k floats to k bytes. Neither pointer needs an alignment beyond its type's.
  RowScale (*row)(const float* x, int64_t k, RowFormat format, uint8_t* q);
};

/// Best first, scalar last.
std::span<const QuantizeRowsKernel> quantize_rows_kernels();

/// All pointers borrowed; strides count elements.
struct QuantizeRowsArgs {
  const float* x = nullptr;
  int64_t x_stride = 0;
  uint8_t* q = nullptr;
  int64_t q_stride = 0;
  float* scale = nullptr;         ///< [rows]
  int32_t* zero_point = nullptr;  ///< [rows]
  RowFormat format = RowFormat::kU8;
};

/// Quantizes problem.rows rows, split over rows. Throws kInvalidArgument for negative sizes.
void quantize_rows(const QuantizeRowsKernel& kernel, const QuantizeRowsProblem& problem,
                   const QuantizeRowsArgs& args, ParallelFor& parallel_for);

}  // namespace halftone::kernels
