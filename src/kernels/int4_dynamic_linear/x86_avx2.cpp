// int4_dynamic_linear for AVX2: blocks of up to 4 rows times 16 columns, eight 16-bit sums in registers for
// 32 k, then folded into float sums in first-level cache. Compiled for AVX2: no inline code from elsewhere.
#include "kernels/common/x86_avx2_math.h"
#include "kernels/int4_dynamic_linear/kernels.h"

namespace halftone::kernels {
namespace {

constexpr int kPanel = 16;
constexpr int kRows = 4;

inline __m256i load32(const uint8_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}

inline __m256i broadcast4(const uint8_t* p) {
  int32_t four;
  __builtin_memcpy(&four, p, 4);
  return _mm256_set1_epi32(four);
}

// 32 k of R rows times 16 columns, in pairs of 16-bit sums.
template <int R>
inline void dot(const uint8_t* x, const uint8_t* data, __m256i (&sum)[R][2]) {
  const __m256i mask = _mm256_set1_epi8(15);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) sum[r][0] = sum[r][1] = broadcast4(x + R * 32 + r * 4);
#pragma GCC unroll 8
  for (int quad = 0; quad < 8; ++quad) {
    __m256i w0 = load32(data + quad / 2 * kPanel * 4), w1 = load32(data + quad / 2 * kPanel * 4 + 32);
    if (quad % 2 == 1) {
      w0 = _mm256_srli_epi16(w0, 4);
      w1 = _mm256_srli_epi16(w1, 4);
    }
    w0 = _mm256_and_si256(w0, mask);
    w1 = _mm256_and_si256(w1, mask);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m256i four = broadcast4(x + (quad * R + r) * 4);
      sum[r][0] = _mm256_add_epi16(sum[r][0], _mm256_maddubs_epi16(w0, four));
      sum[r][1] = _mm256_add_epi16(sum[r][1], _mm256_maddubs_epi16(w1, four));
    }
  }
}

// sums += float(a) · (sx · sw) for R rows and 16 columns.
template <int R, bool Z>
inline void fold(const uint8_t* x, const __m256i (&pairs)[R][2], const uint8_t* chunk, int64_t zero_offset,
                 float* sums) {
  const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 2
  for (int h = 0; h < 2; ++h) {
    const __m256 scale = _mm256_loadu_ps(reinterpret_cast<const float*>(chunk) + h * 8);
    __m256 zero = _mm256_setzero_ps();
    if (Z) {
      zero = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(
          _mm_loadl_epi64(reinterpret_cast<const __m128i*>(chunk + zero_offset + h * 8))));
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      __m256 a = _mm256_cvtepi32_ps(_mm256_madd_epi16(pairs[r][h], ones));
      if (Z) {
        const __m256 sum_x = _mm256_cvtepi32_ps(broadcast4(x + R * 36 + r * 4));
        a = _mm256_fnmadd_ps(zero, sum_x, a);  // exact: all integers below 2^24
      }
      const __m256 both = _mm256_mul_ps(_mm256_castsi256_ps(broadcast4(x + R * 40 + r * 4)), scale);
      float* at = sums + r * kPanel + h * 8;
      _mm256_store_ps(at, _mm256_fmadd_ps(a, both, _mm256_load_ps(at)));
    }
  }
}

template <int R, bool Z>
void multiply(const Int4DynamicStep& s) {
  const Int4DynamicPacked& w = *s.weights;
  const uint8_t* x = s.rows;
  const uint8_t* chunk = w.panels + s.panel * w.panel_bytes;
  for (int i = 0; i < s.panels * R * kPanel; i += 8) _mm256_store_ps(s.sums + i, _mm256_setzero_ps());
  for (int64_t k = 0; k < w.k; k += w.group, chunk += w.chunk_bytes) {
    for (int64_t data = w.data_offset; data < w.chunk_bytes; data += kInt4DynamicBlock * kPanel / 2) {
      for (int p = 0; p < s.panels; ++p) {
        const uint8_t* at = chunk + p * w.panel_bytes;
        __m256i pairs[R][2];
        dot<R>(x, at + data, pairs);
        fold<R, Z>(x, pairs, at, w.zero_offset, s.sums + p * R * kPanel);
      }
      x += R * kInt4DynamicRowBytes;
    }
  }
}

}  // namespace

void int4_dynamic_multiply_avx2(const Int4DynamicStep& s) {
  using Multiply = void (*)(const Int4DynamicStep&);
  static constexpr Multiply kMultiply[2][kRows] = {
      {multiply<1, false>, multiply<2, false>, multiply<3, false>, multiply<4, false>},
      {multiply<1, true>, multiply<2, true>, multiply<3, true>, multiply<4, true>}};
  kMultiply[s.weights->has_zero_points][s.count - 1](s);
}

}  // namespace halftone::kernels
