// softmax, eight at a time, the sum in double precision. Compiled for AVX2: no inline code from elsewhere.
#include "kernels/common/x86_avx2_math.h"
#include "kernels/softmax/kernels.h"

namespace halftone::kernels {
namespace {

inline int part(int64_t left) {
  return left < 8 ? static_cast<int>(left) : 8;
}

// Writes v = scale · x + mask to y and returns its largest element.
float scale_and_max(const float* x, const float* mask, float scale, int64_t k, float* y) {
  const __m256 s = _mm256_set1_ps(scale), lowest = _mm256_set1_ps(-__builtin_inff());
  __m256 largest = lowest;
  for (int64_t i = 0; i < k; i += 8) {
    const int n = part(k - i);
    __m256 v = _mm256_mul_ps(load_part8(x + i, n), s);
    if (mask != nullptr) v = _mm256_add_ps(v, load_part8(mask + i, n));
    store_part8(y + i, v, n);
    if (n < 8) v = _mm256_blendv_ps(lowest, v, _mm256_castsi256_ps(lane_mask8(n)));
    largest = _mm256_max_ps(v, largest);  // a NaN loses, but its exp is NaN and so is the sum
  }
  __m128 m = _mm_max_ps(_mm256_castps256_ps128(largest), _mm256_extractf128_ps(largest, 1));
  m = _mm_max_ps(m, _mm_movehl_ps(m, m));
  return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}

}  // namespace

void softmax_row_avx2(const float* x, const float* mask, float scale, int64_t k, float* y) {
  const __m256 largest = _mm256_set1_ps(scale_and_max(x, mask, scale, k, y));
  __m256d sum0 = _mm256_setzero_pd(), sum1 = sum0;
  for (int64_t i = 0; i < k; i += 8) {
    const int n = part(k - i);
    __m256 e = exp8(_mm256_sub_ps(load_part8(y + i, n), largest));
    store_part8(y + i, e, n);
    if (n < 8) e = _mm256_and_ps(e, _mm256_castsi256_ps(lane_mask8(n)));
    sum0 = _mm256_add_pd(sum0, _mm256_cvtps_pd(_mm256_castps256_ps128(e)));
    sum1 = _mm256_add_pd(sum1, _mm256_cvtps_pd(_mm256_extractf128_ps(e, 1)));
  }
  const __m256d four = _mm256_add_pd(sum0, sum1);
  const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
  const double sum = _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
  const __m256 inverse = _mm256_set1_ps(static_cast<float>(1.0 / sum));
  for (int64_t i = 0; i < k; i += 8) {
    const int n = part(k - i);
    store_part8(y + i, _mm256_mul_ps(load_part8(y + i, n), inverse), n);
  }
}

}  // namespace halftone::kernels
