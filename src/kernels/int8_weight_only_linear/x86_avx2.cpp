// int8_weight_only_linear for AVX2: bytes to floats. Compiled for AVX2: no inline code from elsewhere.
#include "kernels/common/x86_avx2_fused_rows.h"
#include "kernels/int8_weight_only_linear/kernels.h"

namespace halftone::kernels {
namespace {

inline __m256 eight(const int8_t* q) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(q))));
}

struct Bytes {
  static void load(const unsigned char* w, __m256& w0, __m256& w1) {
    const auto* q = reinterpret_cast<const int8_t*>(w);
    w0 = eight(q);
    w1 = eight(q + 8);
  }
};

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

void int8_multiply_rows_avx2(const void* packed, const float* rows, int count, int64_t panel, int panels,
                             float* sums) {
  const auto& p = *static_cast<const Int8WeightOnlyPacked*>(packed);
  const auto* q = reinterpret_cast<const unsigned char*>(p.panels + panel * p.k * p.tile_n);
  for (int c = 0; c < p.tile_n; c += 16) {
    fused_rows<Bytes>({q + c, p.tile_n, p.k * p.tile_n, panels, p.k, sums + c, p.tile_n}, rows, count);
  }
  for (int i = 0; i < panels * count; ++i) {
    const float* scale = p.scale + (panel + i / count) * p.tile_n;
    for (int c = 0; c < p.tile_n; c += 8) {
      float* at = sums + i * p.tile_n + c;
      _mm256_storeu_ps(at, _mm256_mul_ps(_mm256_loadu_ps(at), _mm256_loadu_ps(scale + c)));
    }
  }
}

}  // namespace halftone::kernels
