// fp8_linear for AVX2 and F16C: bytes to floats by way of half precision. Compiled for AVX2: no inline code
// from elsewhere.
#include "kernels/common/x86_avx2_math.h"
#include "kernels/fp8_linear/kernels.h"

namespace halftone::kernels {
namespace {

struct Sixteen {
  __m256 lo;
  __m256 hi;
};

// Sixteen bytes read as the upper bits of half-precision numbers (pack.h). An e4m3fn byte is widened with its
// sign and moved so that its exponent ends where half precision's does; the bit above the exponent is cleared
// of the sign's copy.
template <Float8Format F>
inline Sixteen sixteen(const uint8_t* q) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(q));
  __m256i half;
  if constexpr (F == Float8Format::kE4m3fn) {
    half = _mm256_and_si256(_mm256_slli_epi16(_mm256_cvtepi8_epi16(bytes), 7),
                            _mm256_set1_epi16(static_cast<int16_t>(0xbf80)));
  } else {
    half = _mm256_slli_epi16(_mm256_cvtepi8_epi16(bytes), 8);
  }
  return {_mm256_cvtph_ps(_mm256_castsi256_si128(half)), _mm256_cvtph_ps(_mm256_extracti128_si256(half, 1))};
}

// One row times P spans of 16 columns; the factor is applied to the sums. Four panels are four streams from
// memory.
template <Float8Format F, int P>
void multiply_row(const Fp8Packed& w, const float* x, const uint8_t* q, const float* factor, float* sums) {
  const int64_t apart = w.k * w.tile_n;
  __m256 sum[P][2];
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) sum[p][0] = sum[p][1] = _mm256_setzero_ps();
  for (int64_t i = 0; i < w.k; ++i, q += w.tile_n) {
    const __m256 v = _mm256_broadcast_ss(x + i);
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) {
      const Sixteen s = sixteen<F>(q + p * apart);
      sum[p][0] = _mm256_fmadd_ps(v, s.lo, sum[p][0]);
      sum[p][1] = _mm256_fmadd_ps(v, s.hi, sum[p][1]);
    }
  }
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) {
    const int64_t at = int64_t{p} * w.tile_n;
    _mm256_storeu_ps(sums + at, _mm256_mul_ps(sum[p][0], _mm256_loadu_ps(factor + at)));
    _mm256_storeu_ps(sums + at + 8, _mm256_mul_ps(sum[p][1], _mm256_loadu_ps(factor + at + 8)));
  }
}

template <Float8Format F>
void expand(const Fp8Packed& p, int64_t panel, int64_t k, int64_t steps, float* out) {
  const uint8_t* q = p.panels + (panel * p.k + k) * p.tile_n;
  const float* factor = p.factor + panel * p.tile_n;
  for (int c = 0; c < p.tile_n; c += 16) {
    const __m256 f0 = _mm256_loadu_ps(factor + c), f1 = _mm256_loadu_ps(factor + c + 8);
    for (int64_t i = 0; i < steps; ++i) {
      const int64_t at = i * p.tile_n + c;
      _mm_prefetch(reinterpret_cast<const char*>(q + at) + 4096, _MM_HINT_T0);
      const Sixteen s = sixteen<F>(q + at);
      _mm256_storeu_ps(out + at, _mm256_mul_ps(s.lo, f0));
      _mm256_storeu_ps(out + at + 8, _mm256_mul_ps(s.hi, f1));
    }
  }
}

template <Float8Format F>
void multiply_panels(const Fp8Packed& p, const float* x, int64_t panel, int panels, float* sums) {
  const uint8_t* q = p.panels + panel * p.k * p.tile_n;
  const float* factor = p.factor + panel * p.tile_n;
  for (int c = 0; c < p.tile_n; c += 16) {
    (panels == 4 ? multiply_row<F, 4> : multiply_row<F, 1>)(p, x, q + c, factor + c, sums + c);
  }
}

}  // namespace

void fp8_expand_avx2(const void* packed, int64_t panel, int64_t k, int64_t steps, float* out) {
  const auto& p = *static_cast<const Fp8Packed*>(packed);
  (p.format == Float8Format::kE4m3fn ? expand<Float8Format::kE4m3fn>
                                     : expand<Float8Format::kE5m2>)(p, panel, k, steps, out);
}

void fp8_multiply_row_avx2(const void* packed, const float* x, int64_t panel, int panels, float* sums) {
  const auto& p = *static_cast<const Fp8Packed*>(packed);
  (p.format == Float8Format::kE4m3fn ? multiply_panels<Float8Format::kE4m3fn>
                                     : multiply_panels<Float8Format::kE5m2>)(p, x, panel, panels, sums);
}

}  // namespace halftone::kernels
