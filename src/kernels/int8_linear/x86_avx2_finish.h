// From a tile of raw sums to output, shared by the AVX2 and AVX-512 files. Internal linkage: see
// x86_avx2_math.h.
#pragma once

#include "kernels/common/x86_avx2_epilogue.h"
#include "kernels/int8_linear/kernels.h"

namespace halftone::kernels {
namespace {  // NOLINT(google-build-namespaces)

/// The largest tile of any kernel here: 12 rows of 32, or 3 rows of 2 panels of 32, …
inline constexpr int kInt8MostSums = 12 * 32;

inline void store_sums8(int32_t* out, __m256i a, int count) {
  if (count <= 0) return;
  if (count >= 8) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), a);
  } else {
    _mm256_maskstore_epi32(out, lane_mask8(count), a);
  }
}

/// a of eight columns, for column_sum[c] and on.
inline __m256i exact_sums8(const Int8LinearBlock& b, const int32_t* raw, int r, int c) {
  const __m256i sum = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b.column_sum + c));
  const __m256i a = _mm256_add_epi32(_mm256_load_si256(reinterpret_cast<const __m256i*>(raw)),
                                     _mm256_set1_epi32(b.row_add[r]));
  return _mm256_add_epi32(a, _mm256_mullo_epi32(_mm256_set1_epi32(b.row_mul[r]), sum));
}

/// `tile` holds b.count rows of `width` raw sums (width a multiple of 8), aligned to 32.
inline void finish_tile(const Int8LinearBlock& b, const int32_t* tile, int width) {
  const int columns = b.columns < width ? b.columns : width;
  if (b.sums != nullptr) {
    for (int r = 0; r < b.count; ++r) {
      for (int c = 0; c < columns; c += 8) {
        store_sums8(b.sums + (b.row + r) * b.sums_stride + b.column + c,
                    exact_sums8(b, tile + r * width + c, r, c), columns - c);
      }
    }
    return;
  }
  const auto sums = [&](int r, int c) {
    const __m256 scale = _mm256_mul_ps(_mm256_set1_ps(b.row_scale[r]), _mm256_loadu_ps(b.column_scale + c));
    return _mm256_mul_ps(_mm256_cvtepi32_ps(exact_sums8(b, tile + r * width + c, r, c)), scale);
  };
  finish_block(sums, *b.epilogue, b.row, b.column, b.count, columns);
}

/// Leaves the raw sums in the tile, or writes the output itself and returns true.
using Multiply = bool (*)(const Int8LinearBlock&, int32_t*);

/// All panels of a block: `several` (by rows) where `at_once` of them are left, else `one` (by rows) for
/// each.
inline void compute(Int8LinearBlock b, int width, int at_once, const Multiply* several, const Multiply* one) {
  alignas(64) int32_t tile[kInt8MostSums];
  while (b.columns > 0) {
    const bool many = at_once > 1 && b.columns > width * (at_once - 1);
    const int panels = many ? at_once : 1;
    const bool finished = (many ? several : one)[b.count - 1](b, tile);
    for (int p = 0; p < panels; ++p) {
      if (!finished) finish_tile(b, tile + p * b.count * width, width);
      b.panel += b.panel_bytes;
      b.next += b.panel_bytes;
      b.column += width;
      b.column_sum += width;
      b.column_scale += width;
      b.columns -= width;
    }
  }
}

/// Four bytes in every lane.
inline __m256i broadcast4(const uint8_t* p) {
  int32_t four;
  __builtin_memcpy(&four, p, 4);
  return _mm256_set1_epi32(four);
}

}  // namespace
}  // namespace halftone::kernels
