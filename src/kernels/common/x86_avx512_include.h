// The AVX-512 intrinsics: the compiler's, or SIMDe's emulation if a file is built a second time for tests
// on machines that lack AVX-512 (HALFTONE_EMULATE_AVX512, compiled for AVX2 only).
#pragma once

#if defined(HALFTONE_EMULATE_AVX512)
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
#define HALFTONE_AVX512_NAME(name) name##_emulated
#else
#include <immintrin.h>
#define HALFTONE_AVX512_NAME(name) name
#endif

namespace halftone::kernels {
namespace {  // NOLINT(google-build-namespaces): see x86_avx2_math.h

// SIMDe lacks the masked ones. Masked with all lanes, because GCC 12 warns about the plain ones.

/// 16 integers to floats.
inline __m512 to_floats16(__m512i v) {
#if defined(HALFTONE_EMULATE_AVX512)
  int integers[16];
  float floats[16];
  _mm512_storeu_si512(integers, v);
  for (int i = 0; i < 16; ++i) floats[i] = static_cast<float>(integers[i]);
  return _mm512_loadu_ps(floats);
#else
  return _mm512_maskz_cvtepi32_ps(0xffff, v);
#endif
}

/// 32-bit lanes shifted up by 16.
inline __m512i shift_up16(__m512i v) {
#if defined(HALFTONE_EMULATE_AVX512)
  return _mm512_slli_epi32(v, 16);
#else
  return _mm512_maskz_slli_epi32(0xffff, v, 16);
#endif
}

/// 32-bit lanes shifted down by 28, zeros from above.
inline __m512i shift_down28(__m512i v) {
#if defined(HALFTONE_EMULATE_AVX512)
  return _mm512_srli_epi32(v, 28);
#else
  return _mm512_maskz_srli_epi32(0xffff, v, 28);
#endif
}

/// 16 signed bytes to floats.
inline __m512 bytes_to_floats16(const unsigned char* bytes) {
#if defined(HALFTONE_EMULATE_AVX512)
  float floats[16];
  for (int i = 0; i < 16; ++i) floats[i] = static_cast<float>(static_cast<signed char>(bytes[i]));
  return _mm512_loadu_ps(floats);
#else
  return to_floats16(
      _mm512_maskz_cvtepi8_epi32(0xffff, _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes))));
#endif
}

/// The larger of each; `b` where it is NaN.
inline __m512 larger16(__m512 a, __m512 b) {
#if defined(HALFTONE_EMULATE_AVX512)
  return _mm512_max_ps(a, b);
#else
  return _mm512_maskz_max_ps(0xffff, a, b);
#endif
}

/// 16 half-precision numbers to floats.
inline __m512 halves_to_floats16(__m256i v) {
#if defined(HALFTONE_EMULATE_AVX512)
  float floats[16];
  _mm256_storeu_ps(floats, _mm256_cvtph_ps(_mm256_castsi256_si128(v)));
  _mm256_storeu_ps(floats + 8, _mm256_cvtph_ps(_mm256_extracti128_si256(v, 1)));
  return _mm512_loadu_ps(floats);
#else
  return _mm512_maskz_cvtph_ps(0xffff, v);
#endif
}

}  // namespace
}  // namespace halftone::kernels
