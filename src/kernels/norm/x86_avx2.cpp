// norm, eight at a time, sums in double precision. Compiled for AVX2: no inline code from elsewhere.
#include "kernels/common/x86_avx2_math.h"
#include "kernels/norm/kernels.h"

namespace halftone::kernels {
namespace {

inline int part(int64_t left) {
  return left < 8 ? static_cast<int>(left) : 8;
}

inline __m256d low(__m256 v) {
  return _mm256_cvtps_pd(_mm256_castps256_ps128(v));
}

inline __m256d high(__m256 v) {
  return _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1));
}

inline double total(__m256d v) {
  const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
  return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

// x + residual at i, zero beyond k.
inline __m256 value(const NormRow& n, int64_t i) {
  const int count = part(n.k - i);
  if (n.sum != nullptr) return load_part8(n.sum + i, count);
  const __m256 x = load_part8(n.x + i, count);
  return n.residual != nullptr ? _mm256_add_ps(x, load_part8(n.residual + i, count)) : x;
}

void store_sum(const NormRow& n) {
  for (int64_t i = 0; i < n.k; i += 8) {
    const int count = part(n.k - i);
    __m256 v = load_part8(n.x + i, count);
    if (n.residual != nullptr) v = _mm256_add_ps(v, load_part8(n.residual + i, count));
    store_part8(n.sum + i, v, count);
  }
}

double mean_of(const NormRow& n) {
  __m256d sum0 = _mm256_setzero_pd(), sum1 = sum0;
  for (int64_t i = 0; i < n.k; i += 8) {
    const __m256 v = value(n, i);
    sum0 = _mm256_add_pd(sum0, low(v));
    sum1 = _mm256_add_pd(sum1, high(v));
  }
  return total(_mm256_add_pd(sum0, sum1)) / static_cast<double>(n.k);
}

// Σ (v - mean)²; a part of a vector is summed one by one, because its empty lanes would add mean².
double squares_of(const NormRow& n, double mean) {
  const __m256d m = _mm256_set1_pd(mean);
  __m256d sum0 = _mm256_setzero_pd(), sum1 = sum0;
  int64_t i = 0;
  for (; i + 8 <= n.k; i += 8) {
    const __m256 v = value(n, i);
    const __m256d a = _mm256_sub_pd(low(v), m), b = _mm256_sub_pd(high(v), m);
    sum0 = _mm256_fmadd_pd(a, a, sum0);
    sum1 = _mm256_fmadd_pd(b, b, sum1);
  }
  double squares = total(_mm256_add_pd(sum0, sum1));
  if (i < n.k) {
    alignas(32) float tail[8];
    _mm256_store_ps(tail, value(n, i));
    for (int64_t j = i; j < n.k; ++j) squares += (tail[j - i] - mean) * (tail[j - i] - mean);
  }
  return squares;
}

}  // namespace

void norm_row_avx2(const NormRow& n) {
  if (n.sum != nullptr) store_sum(n);
  const double mean = n.kind == NormKind::kLayer ? mean_of(n) : 0.0;
  const double variance = squares_of(n, mean) / static_cast<double>(n.k) + n.eps;
  const double root = _mm_cvtsd_f64(_mm_sqrt_sd(_mm_setzero_pd(), _mm_set_sd(variance)));
  const __m256 r = _mm256_set1_ps(static_cast<float>(1.0 / root));
  const __m256 shift = _mm256_set1_ps(static_cast<float>(mean));
  for (int64_t i = 0; i < n.k; i += 8) {
    const int count = part(n.k - i);
    __m256 y = _mm256_mul_ps(_mm256_sub_ps(value(n, i), shift), r);
    if (n.gamma != nullptr) y = _mm256_mul_ps(y, load_part8(n.gamma + i, count));
    if (n.beta != nullptr) y = _mm256_add_ps(y, load_part8(n.beta + i, count));
    store_part8(n.y + i, y, count);
  }
}

}  // namespace halftone::kernels
