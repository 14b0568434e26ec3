// From sums to output, 16 columns at a time, shared by the AVX2 and AVX-512 files. Internal linkage: see
// x86_avx2_math.h.
#pragma once

#include <immintrin.h>

#include "kernels/int8_conv/kernels.h"

namespace halftone::kernels {
namespace {  // NOLINT(google-build-namespaces)

/// Eight bytes of the residual, in steps of the output.
inline __m256 residual8(__m128i bytes, __m256i zero, __m256 multiplier, __m256 f) {
  const __m256i q = _mm256_sub_epi32(_mm256_cvtepu8_epi32(bytes), zero);
  return _mm256_fmadd_ps(_mm256_cvtepi32_ps(q), multiplier, f);
}

inline __m128i load_bytes16(const uint8_t* p, int count) {
  if (count >= 16) return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  alignas(16) uint8_t bytes[16] = {};
  for (int i = 0; i < count; ++i) bytes[i] = p[i];
  return _mm_load_si128(reinterpret_cast<const __m128i*>(bytes));
}

inline void store_bytes16(uint8_t* p, __m128i v, int count) {
  if (count >= 16) return _mm_storeu_si128(reinterpret_cast<__m128i*>(p), v);
  alignas(16) uint8_t bytes[16];
  _mm_store_si128(reinterpret_cast<__m128i*>(bytes), v);
  for (int i = 0; i < count; ++i) p[i] = bytes[i];
}

inline void store_floats16(float* p, __m256 f0, __m256 f1, int count) {
  if (count >= 16) {
    _mm256_storeu_ps(p, f0);
    _mm256_storeu_ps(p + 8, f1);
    return;
  }
  alignas(32) float floats[16];
  _mm256_store_ps(floats, f0);
  _mm256_store_ps(floats + 8, f1);
  for (int i = 0; i < count; ++i) p[i] = floats[i];
}

/// y of 16 columns before the lower limit, as 16-bit numbers: columns 0-3, 8-11, 4-7, 12-15. Only the upper
/// limit must be applied before the conversion to integers: what is too large for one becomes INT_MIN, and
/// everything behind saturates. NaN gives the upper limit.
inline __m256i requantized_words(__m256 f0, __m256 f1, __m256 top, __m256i zero) {
  const __m256i i0 = _mm256_cvtps_epi32(_mm256_min_ps(f0, top));
  const __m256i i1 = _mm256_cvtps_epi32(_mm256_min_ps(f1, top));
  return _mm256_adds_epi16(_mm256_packs_epi32(i0, i1), zero);
}

inline __m128i requantize16(__m256 f0, __m256 f1, const Int8ConvOutput& o) {
  const __m256i words = requantized_words(f0, f1, _mm256_set1_ps(o.top),
                                          _mm256_set1_epi16(static_cast<short>(o.args->out_zero_point)));
  const __m128i bytes = _mm_shuffle_epi32(
      _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)), 0xd8);
  return _mm_max_epu8(bytes, _mm_set1_epi8(static_cast<char>(o.args->lo)));
}

/// Columns c to c + 15 of the block's pixel `row`.
inline void finish16(const Int8ConvOutput& o, int row, int c, __m256i sum0, __m256i sum1) {
  const Int8ConvArgs& args = *o.args;
  const int count = o.columns - c;
  if (count <= 0) return;
  const int64_t pixel = o.pixel[row], channel = o.column + c;
  __m256 f0 = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum0), _mm256_loadu_ps(o.multiplier + c),
                              _mm256_loadu_ps(o.offset + c));
  __m256 f1 = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum1), _mm256_loadu_ps(o.multiplier + c + 8),
                              _mm256_loadu_ps(o.offset + c + 8));
  if (args.residual != nullptr) {
    const __m128i bytes = load_bytes16(args.residual + pixel * args.residual_stride + channel, count);
    const __m256i zero = _mm256_set1_epi32(args.residual_zero_point);
    const __m256 multiplier = _mm256_set1_ps(args.residual_multiplier);
    f0 = residual8(bytes, zero, multiplier, f0);
    f1 = residual8(_mm_unpackhi_epi64(bytes, bytes), zero, multiplier, f1);
  }
  if (args.out != nullptr)
    return store_bytes16(args.out + pixel * args.out_stride + channel, requantize16(f0, f1, o), count);
  const __m256 lo = _mm256_set1_ps(args.lo_f32), hi = _mm256_set1_ps(args.hi_f32);
  store_floats16(args.out_f32 + pixel * args.out_stride + channel, _mm256_min_ps(hi, _mm256_max_ps(lo, f0)),
                 _mm256_min_ps(hi, _mm256_max_ps(lo, f1)), count);
}

/// 16 columns of R pixels from `first` on, as bytes: what is the same for all of them is loaded once, and two
/// pixels share the last steps.
template <int R, bool Residual>
inline void finish_bytes(const Int8ConvOutput& o, int first, const __m256i (&sum)[R][2]) {
  const Int8ConvArgs& args = *o.args;
  const __m256 m0 = _mm256_loadu_ps(o.multiplier), m1 = _mm256_loadu_ps(o.multiplier + 8);
  const __m256 add0 = _mm256_loadu_ps(o.offset), add1 = _mm256_loadu_ps(o.offset + 8);
  const __m256 top = _mm256_set1_ps(o.top), multiplier = _mm256_set1_ps(args.residual_multiplier);
  const __m256i residual_zero = _mm256_set1_epi32(args.residual_zero_point);
  const __m256i zero = _mm256_set1_epi16(static_cast<short>(args.out_zero_point));
  const __m256i lo = _mm256_set1_epi8(static_cast<char>(args.lo));
  __m256i words[R + 1];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    __m256 f0 = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum[r][0]), m0, add0);
    __m256 f1 = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum[r][1]), m1, add1);
    if (Residual) {
      const uint8_t* from = args.residual + o.pixel[first + r] * args.residual_stride + o.column;
      f0 = residual8(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)), residual_zero, multiplier, f0);
      f1 = residual8(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + 8)), residual_zero, multiplier,
                     f1);
    }
    words[r] = requantized_words(f0, f1, top, zero);
  }
  words[R] = words[R - 1];
#pragma GCC unroll 8
  for (int r = 0; r < R; r += 2) {
    const __m256i mixed = _mm256_max_epu8(_mm256_packus_epi16(words[r], words[r + 1]), lo);
    const __m256i bytes = _mm256_permutevar8x32_epi32(mixed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    uint8_t* to = args.out + o.column;
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + o.pixel[first + r] * args.out_stride),
                     _mm256_castsi256_si128(bytes));
    if (r + 1 < R)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + o.pixel[first + r + 1] * args.out_stride),
                       _mm256_extracti128_si256(bytes, 1));
  }
}

/// 16 columns of R pixels from `first` on.
template <int R>
inline void finish_rows(const Int8ConvOutput& o, int first, const __m256i (&sum)[R][2]) {
  if (o.columns >= 16 && o.args->out != nullptr) {
    if (o.args->residual != nullptr) return finish_bytes<R, true>(o, first, sum);
    return finish_bytes<R, false>(o, first, sum);
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) finish16(o, first + r, 0, sum[r][0], sum[r][1]);
}

}  // namespace
}  // namespace halftone::kernels
