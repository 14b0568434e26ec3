// embedding_rows: rows of a quantized table, picked by index, as floats.
//
//   table [rows][width]  integers q, int8 or int4; for each row and each group of 32, 64, 128 or 256
//                        neighbouring columns (or the whole row) a scale s and optionally a zero point z
//
//   y[i][c] = (q[index[i]][c] - z[index[i]][c / group]) · s[index[i]][c / group]
//                                                                      rounded once more for bfloat16
//
// q - z is exact and multiplied once, so the result is the same bit for bit on every instruction set. Scales
// are used as they are: NaN and infinities go where IEEE arithmetic takes them. Layout: the table is read in
// place (in a mapped file, say), without packing; int4 rows come from pack_int4_rows (pack.h): two columns a
// byte, the even one in the lower four bits, two's complement; a row of odd width ends with a half-used byte.
#pragma once

#include <cstdint>
#include <span>

#include "cpu/isa.h"
#include "cpu/parallel_for.h"
#include "kernels/common/epilogue.h"

namespace halftone::kernels {

enum class EmbeddingFormat : int { kInt8, kInt4 };

struct EmbeddingRowsProblem {
  int64_t count = 0;  ///< rows to pick
  int64_t rows = 0;   ///< rows of the table
  int64_t width = 0;
  EmbeddingFormat format = EmbeddingFormat::kInt8;
  /// Columns that share a scale: 32, 64, 128 or 256, fewer in the last group if it does not divide the
  /// width; 0 for the whole row.
  int group = 0;

  int64_t groups() const { return group == 0 ? 1 : (width + group - 1) / group; }
  /// Bytes of one row, without padding.
  int64_t row_bytes() const { return format == EmbeddingFormat::kInt8 ? width : (width + 1) / 2; }
};

/// Columns that share a scale and a zero point, and where they go. Runs of int4 begin at an even column.
struct EmbeddingRun {
  const uint8_t* q;
  EmbeddingFormat format;
  int64_t width;
  float scale;
  int32_t zero_point;
  OutputType type;  ///< kFloat32 or kBFloat16
  void* out;
};

struct EmbeddingRowsKernel {
  const char* name;
  Isa isa;
  const char* (*refuse)(const EmbeddingRowsProblem&);
  void (*run)(const EmbeddingRun& run);
};

/// Best first, scalar last.
std::span<const EmbeddingRowsKernel> embedding_rows_kernels();

/// The best kernel at `isa`. Throws kInvalidArgument for negative sizes and for a group that is not allowed.
const EmbeddingRowsKernel& choose_embedding_rows(const EmbeddingRowsProblem& problem, Isa isa = active_isa());

/// Borrowed; exactly one of the two index pointers is given.
struct EmbeddingRowsArgs {
  const int64_t* index64 = nullptr;        ///< [count]
  const int32_t* index32 = nullptr;        ///< [count]
  const void* table = nullptr;             ///< [rows][row_stride] bytes
  int64_t row_stride = 0;                  ///< bytes
  const float* scale = nullptr;            ///< [rows][groups]
  const int8_t* zero_point = nullptr;      ///< [rows][groups], or none
  OutputType type = OutputType::kFloat32;  ///< kFloat32 or kBFloat16
  void* out = nullptr;                     ///< [count][out_stride]
  int64_t out_stride = 0;                  ///< elements
};

/// Splits over the picked rows; allocates nothing. Throws kInvalidArgument when the arguments do not fit,
/// and, naming the index and its place and before anything is written, for an index outside [0, rows).
void embedding_rows(const EmbeddingRowsKernel& kernel, const EmbeddingRowsProblem& problem,
                    const EmbeddingRowsArgs& args, ParallelFor& parallel_for);

}  // namespace halftone::kernels
