// Vector forms of exp, the activations and bfloat16, eight lanes at a time.
//
// Only for files that are compiled for AVX2 and FMA or more. Everything here has internal linkage on purpose:
// an inline function with external linkage is a weak symbol, and the linker may give its AVX2 body to code
// that runs on a machine without AVX2.
#pragma once

#include <immintrin.h>

#include "kernels/common/epilogue.h"

namespace halftone::kernels {
namespace {  // NOLINT(google-build-namespaces): see above

/// exp(x). Relative error below 3e-7 where the result is a normal number; denormals are kept (absolute error
/// below 2e-45); above 88.73 inf, NaN gives NaN.
inline __m256 exp8(__m256 x) {
  // max and min return their second operand when one is NaN, so NaN passes both.
  x = _mm256_max_ps(_mm256_set1_ps(-104.0f), x);
  x = _mm256_min_ps(_mm256_set1_ps(89.0f), x);
  const __m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(1.44269504088896341f)),
                                   _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  // ln 2 in two parts: the first has so few bits that n times it is exact.
  __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0.693359375f), x);
  r = _mm256_fnmadd_ps(n, _mm256_set1_ps(-2.12194440054690583e-4f), r);
  __m256 p = _mm256_set1_ps(0.00138146f);
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0.00836872f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0.04166839f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0.16666521f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0.49999993f));
  p = _mm256_fmadd_ps(_mm256_mul_ps(p, r), r, _mm256_add_ps(r, _mm256_set1_ps(1.0f)));
  // Two factors of 2^(n/2), because 2^n alone leaves the exponent's range at both ends.
  const __m256i e = _mm256_cvtps_epi32(n);
  const __m256i half = _mm256_srai_epi32(e, 1);
  const __m256i bias = _mm256_set1_epi32(127);
  const __m256i first = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
  const __m256i second = _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(e, half), bias), 23);
  return _mm256_mul_ps(_mm256_mul_ps(p, _mm256_castsi256_ps(first)), _mm256_castsi256_ps(second));
}

inline __m256 sigmoid_times8(__m256 x, __m256 argument) {
  const __m256 e = exp8(_mm256_xor_ps(argument, _mm256_set1_ps(-0.0f)));
  return _mm256_div_ps(x, _mm256_add_ps(_mm256_set1_ps(1.0f), e));
}

/// x·Φ(x) = max(x, 0) - z·Φ(-z) for z = |x|, so the left tail keeps its digits: Φ(-z) = exp(-z²/2) · g(z),
/// where g is a polynomial of degree 6 in t = 1 / (1 + 0.295 z), fitted to a relative error of 1.8e-6 on [0,
/// 13]. Beyond 13 the second term is below kActivationAbsolute. Relative error below 1e-5 in all.
inline __m256 gelu_erf8(__m256 x) {
  const __m256 one = _mm256_set1_ps(1.0f), half = _mm256_set1_ps(0.5f);
  const __m256 magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
  const __m256 relu = _mm256_fmadd_ps(half, x, _mm256_mul_ps(half, magnitude));  // NaN for -inf, as 0 · inf
  const __m256 z = _mm256_min_ps(_mm256_set1_ps(13.0f), magnitude);
  const __m256 t = _mm256_div_ps(one, _mm256_fmadd_ps(_mm256_set1_ps(0.295f), z, one));
  __m256 g = _mm256_set1_ps(-8.900776e-02f);
  g = _mm256_fmadd_ps(g, t, _mm256_set1_ps(2.7123863e-01f));
  g = _mm256_fmadd_ps(g, t, _mm256_set1_ps(-8.469999e-02f));
  g = _mm256_fmadd_ps(g, t, _mm256_set1_ps(1.8406197e-01f));
  g = _mm256_fmadd_ps(g, t, _mm256_set1_ps(9.8243155e-02f));
  g = _mm256_fmadd_ps(g, t, _mm256_set1_ps(1.2031024e-01f));
  g = _mm256_fmadd_ps(g, t, _mm256_set1_ps(-1.454949e-04f));
  // exp(-z²/2) = 2^n · 2^f. Adding 1.5 · 2^23 leaves the nearest integer n, at least -122, in the low bits.
  const __m256 scaled = _mm256_mul_ps(z, _mm256_set1_ps(-0.72134752044448170f));  // -log2(e) / 2
  const __m256 shift = _mm256_set1_ps(12582912.0f);
  const __m256 n = _mm256_fmadd_ps(z, scaled, shift);
  const __m256 f = _mm256_fmsub_ps(z, scaled, _mm256_sub_ps(n, shift));
  __m256 p = _mm256_set1_ps(9.569998e-03f);
  p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(5.5917855e-02f));
  p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(2.4024747e-01f));
  p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(6.931218e-01f));
  p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(9.999993e-01f));
  const __m256i e = _mm256_add_epi32(_mm256_castps_si256(p), _mm256_slli_epi32(_mm256_castps_si256(n), 23));
  return _mm256_fnmadd_ps(_mm256_mul_ps(z, g), _mm256_castsi256_ps(e), relu);
}

inline __m256 gelu_tanh8(__m256 x) {
  const __m256 cubic = _mm256_mul_ps(_mm256_mul_ps(x, x), _mm256_set1_ps(0.044715f));
  return sigmoid_times8(x, _mm256_mul_ps(_mm256_set1_ps(1.5957691216057308f), _mm256_fmadd_ps(cubic, x, x)));
}

inline __m256 activate8(__m256 x, Activation activation) {
  switch (activation) {
    case Activation::kRelu:
      return _mm256_max_ps(_mm256_setzero_ps(), x);  // NaN passes
    case Activation::kGeluErf:
      return gelu_erf8(x);
    case Activation::kGeluTanh:
      return gelu_tanh8(x);
    case Activation::kSilu:
      return sigmoid_times8(x, x);
    case Activation::kNone:
      break;
  }
  return x;
}

/// The same rounding as to_bfloat16, bit for bit.
inline __m128i to_bfloat16x8(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded =
      _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd), 16);
  const __m256i quiet = _mm256_or_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(0x40));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  const __m256i words = _mm256_blendv_epi8(rounded, quiet, nan);
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(words, words), 0x88);
  return _mm256_castsi256_si128(packed);
}

inline __m256 from_bfloat16x8(__m128i bits) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

inline float add_lanes8(__m256 x) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

inline float max_lanes8(__m256 x) {
  __m128 m = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  m = _mm_max_ps(m, _mm_movehl_ps(m, m));
  return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}

/// All-ones in the first `count` lanes, 0 <= count <= 8.
inline __m256i lane_mask8(int count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/// The first `count` floats at p, 0 elsewhere; never reads past them.
inline __m256 load_part8(const float* p, int count) {
  return count >= 8 ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, lane_mask8(count));
}

inline void store_part8(float* p, __m256 x, int count) {
  if (count >= 8) {
    _mm256_storeu_ps(p, x);
  } else {
    _mm256_maskstore_ps(p, lane_mask8(count), x);
  }
}

}  // namespace
}  // namespace halftone::kernels
