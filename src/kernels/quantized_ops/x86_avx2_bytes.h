// Bytes to floats and back, 32 at a time, for the AVX2 files of quantized_ops. Internal linkage: see
// x86_avx2_math.h.
#pragma once

#include <immintrin.h>

#include "kernels/quantized_ops/kernels.h"

namespace halftone::kernels {
namespace {  // NOLINT(google-build-namespaces)

/// What is needed to turn floats into bytes of a target.
struct ByteTarget {
  __m256 zero, top, bottom;

  explicit ByteTarget(const QuantTarget& t)
      : zero(_mm256_set1_ps(static_cast<float>(t.params.zero_point))),
        top(_mm256_set1_ps(static_cast<float>(t.hi))),
        bottom(_mm256_set1_ps(static_cast<float>(t.lo))) {}
};

/// rint(f + zero point) within the limits. min gives its second operand for NaN: the upper limit.
inline __m256i rounded8(__m256 f, const ByteTarget& t) {
  return _mm256_cvtps_epi32(_mm256_max_ps(_mm256_min_ps(_mm256_add_ps(f, t.zero), t.top), t.bottom));
}

/// 32 bytes in order from four times eight floats. The low byte of a 16-bit lane is right for u8 and s8.
inline __m256i bytes32(__m256 f0, __m256 f1, __m256 f2, __m256 f3, const ByteTarget& t) {
  const __m256i low = _mm256_set1_epi16(0xff);
  const __m256i first = _mm256_and_si256(_mm256_packs_epi32(rounded8(f0, t), rounded8(f1, t)), low);
  const __m256i second = _mm256_and_si256(_mm256_packs_epi32(rounded8(f2, t), rounded8(f3, t)), low);
  return _mm256_permutevar8x32_epi32(_mm256_packus_epi16(first, second),
                                     _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

/// Eight bytes, minus the zero point, as floats.
template <bool Signed>
inline __m256 centred8(const uint8_t* p, __m256i zero) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  const __m256i wide = Signed ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes);
  return _mm256_cvtepi32_ps(_mm256_sub_epi32(wide, zero));
}

inline void copy_few(void* to, const void* from, int64_t bytes) {
  __builtin_memcpy(to, from, static_cast<size_t>(bytes));
}

/// 32 bytes at y; floats(at) gives the eight floats from `at` on.
template <typename Floats>
inline void store32(uint8_t* y, Floats floats, const ByteTarget& t) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(y),
                      bytes32(floats(0), floats(8), floats(16), floats(24), t));
}

}  // namespace
}  // namespace halftone::kernels
