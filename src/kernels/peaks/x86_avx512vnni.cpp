// The multiply-add sequences of the AVX-512 kernels, on operands that stay in the first-level cache: 12 rows
// times 32 columns, as in fp32_linear and int8_linear. Compiled for AVX-512.
#include <immintrin.h>

#include "kernels/peaks/peaks.h"

namespace halftone::kernels {
namespace {

constexpr int64_t kSteps = 64;  // a walk through the operands
constexpr int kRows = 12;
alignas(64) float rows_data[kSteps * kRows];
alignas(64) unsigned char weights_data[kSteps * 128];

// By hand: GCC 12 copies the sums of this loop to memory and back.
inline void multiply_add(__m512i& sum, __m512 x, __m512i w) {
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(w));
}

// Keeps a sum alive without storing it.
template <typename Vector>
inline void keep(Vector v) {
  __asm__ volatile("" : : "v"(v));
}

}  // namespace

int64_t spin_vnni_avx512vnni(int64_t steps) {
  __m512i sum[kRows][2];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) sum[r][0] = sum[r][1] = _mm512_setzero_si512();
  for (int64_t s = 0; s < steps; s += kSteps) {
    const unsigned char* w = weights_data;
    const float* x = rows_data;
    for (int64_t i = 0; i < kSteps; ++i, w += 128, x += kRows) {
      const __m512i w0 = _mm512_load_si512(w), w1 = _mm512_load_si512(w + 64);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const __m512 v = _mm512_set1_ps(x[r]);
        multiply_add(sum[r][0], v, w0);
        multiply_add(sum[r][1], v, w1);
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) keep(_mm512_add_epi32(sum[r][0], sum[r][1]));
  return steps * kRows * 128;
}

int64_t spin_fma_avx512vnni(int64_t steps) {
  __m512 sum[kRows][2];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) sum[r][0] = sum[r][1] = _mm512_setzero_ps();
  for (int64_t s = 0; s < steps; s += kSteps) {
    const auto* w = reinterpret_cast<const float*>(weights_data);
    const float* x = rows_data;
    for (int64_t i = 0; i < kSteps; ++i, w += 32, x += kRows) {
      const __m512 w0 = _mm512_load_ps(w), w1 = _mm512_load_ps(w + 16);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const __m512 v = _mm512_set1_ps(x[r]);
        sum[r][0] = _mm512_fmadd_ps(v, w0, sum[r][0]);
        sum[r][1] = _mm512_fmadd_ps(v, w1, sum[r][1]);
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) keep(_mm512_add_ps(sum[r][0], sum[r][1]));
  return steps * kRows * 32;
}

}  // namespace halftone::kernels
