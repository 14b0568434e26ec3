// int8_weight_only_linear for AVX2: bytes to floats. Compiled for AVX2: no inline code from elsewhere.
#include "kernels/common/x86_avx2_math.h"
#include "kernels/int8_weight_only_linear/kernels.h"

namespace halftone::kernels {
namespace {

inline __m256 eight(const int8_t* q) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(q))));
}

// One row times P spans of 16 columns, `stride` bytes apart from one step of k to the next, `apart` bytes
// from one span to the next. The scale is applied to the sums. Four panels are four streams from memory.
template <int P>
void multiply_row(const float* x, int64_t k, const int8_t* q, int stride, int64_t apart, const float* scale,
                  int64_t scale_apart, float* sums, int64_t sums_apart) {
  __m256 sum[P][2];
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) sum[p][0] = sum[p][1] = _mm256_setzero_ps();
  for (int64_t i = 0; i < k; ++i, q += stride) {
    const __m256 v = _mm256_broadcast_ss(x + i);
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) {
      sum[p][0] = _mm256_fmadd_ps(v, eight(q + p * apart), sum[p][0]);
      sum[p][1] = _mm256_fmadd_ps(v, eight(q + p * apart + 8), sum[p][1]);
    }
  }
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) {
    _mm256_storeu_ps(sums + p * sums_apart,
                     _mm256_mul_ps(sum[p][0], _mm256_loadu_ps(scale + p * scale_apart)));
    _mm256_storeu_ps(sums + p * sums_apart + 8,
                     _mm256_mul_ps(sum[p][1], _mm256_loadu_ps(scale + p * scale_apart + 8)));
  }
}

}  // namespace

void int8_expand_avx2(const void* packed, int64_t panel, int64_t k, int64_t steps, float* out) {
  const auto& p = *static_cast<const Int8WeightOnlyPacked*>(packed);
  const int8_t* q = p.panels + (panel * p.k + k) * p.tile_n;
  const float* scale = p.scale + panel * p.tile_n;
  for (int c = 0; c < p.tile_n; c += 16) {
    const __m256 s0 = _mm256_loadu_ps(scale + c), s1 = _mm256_loadu_ps(scale + c + 8);
    for (int64_t i = 0; i < steps; ++i) {
      const int64_t at = i * p.tile_n + c;
      _mm_prefetch(reinterpret_cast<const char*>(q + at) + 4096, _MM_HINT_T0);
      _mm256_storeu_ps(out + at, _mm256_mul_ps(eight(q + at), s0));
      _mm256_storeu_ps(out + at + 8, _mm256_mul_ps(eight(q + at + 8), s1));
    }
  }
}

void int8_multiply_row_avx2(const void* packed, const float* x, int64_t panel, int panels, float* sums) {
  const auto& p = *static_cast<const Int8WeightOnlyPacked*>(packed);
  const int8_t* q = p.panels + panel * p.k * p.tile_n;
  const float* scale = p.scale + panel * p.tile_n;
  for (int c = 0; c < p.tile_n; c += 16) {
    if (panels == 4) {
      multiply_row<4>(x, p.k, q + c, p.tile_n, p.k * p.tile_n, scale + c, p.tile_n, sums + c, p.tile_n);
    } else {
      multiply_row<1>(x, p.k, q + c, p.tile_n, 0, scale + c, 0, sums + c, 0);
    }
  }
}

}  // namespace halftone::kernels
