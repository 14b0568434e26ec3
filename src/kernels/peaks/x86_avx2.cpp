// The kernels' own multiply-add sequences, on operands that stay in the first-level cache. Compiled for AVX2.
#include <immintrin.h>

#include "kernels/peaks/peaks.h"

namespace halftone::kernels {
namespace {

constexpr int64_t kSteps = 64;  // a walk through the operands
alignas(64) unsigned char rows_data[kSteps * 32];
alignas(64) unsigned char weights_data[kSteps * 64];

inline __m256i four(const unsigned char* p) {
  int v;
  __builtin_memcpy(&v, p, 4);
  return _mm256_set1_epi32(v);
}

// Three rows take all registers, counted by hand as in int8_conv's kernel.
template <int D>
int64_t spin_deep(int64_t steps) {
  constexpr int kRows = 3;
  alignas(32) static constexpr short kOnes[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  __m256i sum[kRows][2], sum16[kRows][2];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) sum[r][0] = sum[r][1] = _mm256_setzero_si256();
  for (int64_t i = 0; i < steps; i += D) {
    const unsigned char *w = weights_data + i % kSteps * 64, *x = rows_data + i % kSteps * kRows * 4;
#pragma GCC unroll 8
    for (int d = 0; d < D; ++d, w += 64, x += kRows * 4) {
      __m256i w0, w1, bytes, products;
      __asm__ volatile("vmovdqa %1, %0" : "=x"(w0) : "m"(*reinterpret_cast<const __m256i*>(w)));
      __asm__ volatile("vmovdqa %1, %0" : "=x"(w1) : "m"(*reinterpret_cast<const __m256i*>(w + 32)));
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const int& four_bytes = *reinterpret_cast<const int*>(x + r * 4);
        if (d == 0) {
          __asm__ volatile("vpbroadcastd %2, %1\n\tvpmaddubsw %3, %1, %0\n\tvpmaddubsw %4, %1, %1"
                           : "=&x"(sum16[r][0]), "=&x"(sum16[r][1])
                           : "m"(four_bytes), "x"(w0), "x"(w1));
        } else {
          __asm__ volatile(
              "vpbroadcastd %4, %2\n\tvpmaddubsw %5, %2, %3\n\tvpaddw %3, %0, %0\n\t"
              "vpmaddubsw %6, %2, %2\n\tvpaddw %2, %1, %1"
              : "+x"(sum16[r][0]), "+x"(sum16[r][1]), "=&x"(bytes), "=&x"(products)
              : "m"(four_bytes), "x"(w0), "x"(w1));
        }
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int h = 0; h < 2; ++h) {
        __asm__ volatile("vpmaddwd %2, %0, %0\n\tvpaddd %0, %1, %1"
                         : "+x"(sum16[r][h]), "+x"(sum[r][h])
                         : "m"(*reinterpret_cast<const __m256i*>(kOnes)));
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) __asm__ volatile("" : : "x"(sum[r][0]), "x"(sum[r][1]));
  return steps * kRows * 64;
}

// Keeps the sums alive without storing them.
inline void keep(__m256i v) {
  __asm__ volatile("" : : "x"(v));
}

}  // namespace

int64_t spin_chain_avx2(int64_t steps) {
  constexpr int kRows = 6;
  __m256i sum[kRows][2];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) sum[r][0] = sum[r][1] = _mm256_setzero_si256();
  const __m256i ones = _mm256_set1_epi16(1);
  for (int64_t s = 0; s < steps; s += kSteps) {
    const unsigned char *w = weights_data, *x = rows_data;
    for (int64_t i = 0; i < kSteps; ++i, w += 64, x += kRows * 4) {
      const __m256i w0 = _mm256_load_si256(reinterpret_cast<const __m256i*>(w));
      const __m256i w1 = _mm256_load_si256(reinterpret_cast<const __m256i*>(w + 32));
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m256i v = four(x + r * 4);
        sum[r][0] = _mm256_add_epi32(sum[r][0], _mm256_madd_epi16(_mm256_maddubs_epi16(v, w0), ones));
        sum[r][1] = _mm256_add_epi32(sum[r][1], _mm256_madd_epi16(_mm256_maddubs_epi16(v, w1), ones));
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) keep(_mm256_add_epi32(sum[r][0], sum[r][1]));
  return steps * kRows * 64;
}

int64_t spin_exact8_avx2(int64_t steps) {
  constexpr int kRows = 4;
  __m256i sum[kRows][2];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) sum[r][0] = sum[r][1] = _mm256_setzero_si256();
  const __m256i ones = _mm256_set1_epi16(1);
  for (int64_t s = 0; s < steps; s += kSteps) {
    const unsigned char *w = weights_data, *x = rows_data;
    for (int64_t i = 0; i < kSteps; ++i, w += 64, x += kRows * 8) {
      const __m256i w0 = _mm256_load_si256(reinterpret_cast<const __m256i*>(w));
      const __m256i w1 = _mm256_load_si256(reinterpret_cast<const __m256i*>(w + 32));
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m256i v = four(x + r * 8), mask = four(x + r * 8 + 4);
        const __m256i p0 = _mm256_maddubs_epi16(v, _mm256_xor_si256(mask, w0));
        const __m256i p1 = _mm256_maddubs_epi16(v, _mm256_xor_si256(mask, w1));
        sum[r][0] = _mm256_add_epi32(sum[r][0], _mm256_madd_epi16(p0, ones));
        sum[r][1] = _mm256_add_epi32(sum[r][1], _mm256_madd_epi16(p1, ones));
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) keep(_mm256_add_epi32(sum[r][0], sum[r][1]));
  return steps * kRows * 64;
}

int64_t spin_deep2_avx2(int64_t steps) {
  return spin_deep<2>(steps);
}

int64_t spin_deep8_avx2(int64_t steps) {
  return spin_deep<8>(steps);
}

int64_t spin_fma_avx2(int64_t steps) {
  constexpr int kRows = 6;
  __m256 sum[kRows][2];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) sum[r][0] = sum[r][1] = _mm256_setzero_ps();
  for (int64_t s = 0; s < steps; s += kSteps) {
    const auto* w = reinterpret_cast<const float*>(weights_data);
    const unsigned char* x = rows_data;
    for (int64_t i = 0; i < kSteps; ++i, w += 16, x += kRows * 4) {
      const __m256 w0 = _mm256_load_ps(w), w1 = _mm256_load_ps(w + 8);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m256 v = _mm256_castsi256_ps(four(x + r * 4));
        sum[r][0] = _mm256_fmadd_ps(v, w0, sum[r][0]);
        sum[r][1] = _mm256_fmadd_ps(v, w1, sum[r][1]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) keep(_mm256_castps_si256(_mm256_add_ps(sum[r][0], sum[r][1])));
  return steps * kRows * 16;
}

int64_t read_avx2(const void* data, int64_t bytes) {
  // Four streams: one alone does not fill the way to memory (Zen 3: 15 GB/s against 26 for one core).
  const int64_t stream = bytes / 4 / 32;
  const auto* p = static_cast<const __m256i*>(data);
  __m256i sum[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) sum[i] = _mm256_setzero_si256();
  for (int64_t at = 0; at < stream; at += 2) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i)
      sum[i] = _mm256_xor_si256(sum[i], _mm256_load_si256(p + i / 2 * stream + at + i % 2));
  }
#pragma GCC unroll 8
  for (int i = 1; i < 8; ++i) sum[0] = _mm256_xor_si256(sum[0], sum[i]);
  return _mm256_extract_epi64(sum[0], 0);
}

}  // namespace halftone::kernels
