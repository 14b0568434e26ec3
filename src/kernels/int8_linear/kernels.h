// The arguments of int8_linear's kernels, and the kernels, one file for each instruction set. Contract:
// int8_linear.h.
#pragma once

#include "kernels/int8_linear/int8_linear.h"

namespace halftone::kernels {

/// How many panels a kernel should get at once for a block of so many rows. Few rows leave registers free,
/// and several panels are several streams from memory: on Zen 3 one core reads 15 GB/s through one stream, 21
/// through two and 26 through four.
constexpr int int8_panels_at_once(int count) {
  return count == 1 ? 4 : count <= 3 ? 2 : 1;
}

/// A block of rows times one or more neighbouring panels of columns.
struct Int8LinearBlock {
  const uint8_t* rows = nullptr;  ///< packed by the kernel's pack_rows with the same count
  int count = 0;                  ///< rows in the block
  int64_t quads = 0;              ///< ceil(k / 4)
  const int8_t* panel = nullptr;  ///< the first; quads * tile.n * 4 bytes, aligned to 64
  int64_t panel_bytes = 0;        ///< from one panel to the next
  // What to fetch meanwhile: this block's share of the panel that will be read after the block's own panels,
  // a quarter of it in each of four streams. For the next of the block's panels, panel_bytes further. Only a
  // hint; it may point past the weights.
  const int8_t* next = nullptr;
  int64_t next_quarter = 0;  ///< bytes from one stream to the next
  int64_t next_step = 0;     ///< bytes for each four quads

  // For the block's first row and on: a = raw + row_add + row_mul * column_sum, s = float(a) * (row_scale *
  // column_scale).
  const int32_t* row_add = nullptr;
  const int32_t* row_mul = nullptr;
  const float* row_scale = nullptr;
  // For the first panel's first column and on; padded to whole panels.
  const int32_t* column_sum = nullptr;
  const float* column_scale = nullptr;

  int64_t row = 0;     ///< of the output, for the block's first row
  int64_t column = 0;  ///< of the output, for the first panel's first column
  int columns = 0;     ///< that exist; they say how many panels there are
  const Epilogue* epilogue = nullptr;
  int32_t* sums = nullptr;  ///< [m][sums_stride]: store a here instead
  int64_t sums_stride = 0;
};

void int8_pack_rows_scalar(const uint8_t* q, int64_t stride, int count, int64_t k, uint8_t flip,
                           uint8_t* packed, int32_t* row_add);
void int8_compute_scalar(const Int8LinearBlock& block);

void int8_pack_rows_avx2(const uint8_t* q, int64_t stride, int count, int64_t k, uint8_t flip,
                         uint8_t* packed, int32_t* row_add);
void int8_compute_s7_avx2(const Int8LinearBlock& block);

void int8_pack_rows_split_avx2(const uint8_t* q, int64_t stride, int count, int64_t k, uint8_t flip,
                               uint8_t* packed, int32_t* row_add);
void int8_compute_s8_avx2(const Int8LinearBlock& block);

void int8_compute_avx512vnni(const Int8LinearBlock& block);
/// The same source through SIMDe, linked only into tests: machines without AVX-512 check its results too.
void int8_compute_avx512vnni_emulated(const Int8LinearBlock& block);

}  // namespace halftone::kernels
