// int4_dynamic_linear for AVX-512 VNNI: blocks of up to 6 rows times 32 columns; vpdpbusd sums in 32 bits.
// Compiled for AVX-512 (or emulated, for tests): no inline code from elsewhere.
#include "kernels/common/x86_avx512_include.h"
// After the AVX-512 intrinsics, whichever they are.
#include "kernels/int4_dynamic_linear/kernels.h"

namespace halftone::kernels {
namespace {

constexpr int kPanel = 32;
constexpr int kRows = 6;

inline int32_t load4(const uint8_t* p) {
  int32_t four;
  __builtin_memcpy(&four, p, 4);
  return four;
}

// 32 k of R rows times 32 columns: Σ qx · qw.
template <int R>
inline void dot(const uint8_t* x, const uint8_t* data, __m512i (&sum)[R][2]) {
  const __m512i mask = _mm512_set1_epi8(15);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) sum[r][0] = sum[r][1] = _mm512_set1_epi32(-8 * load4(x + R * 36 + r * 4));
#pragma GCC unroll 8
  for (int quad = 0; quad < 8; ++quad) {
    __m512i w0 = _mm512_loadu_si512(data + quad / 2 * kPanel * 4);
    __m512i w1 = _mm512_loadu_si512(data + quad / 2 * kPanel * 4 + 64);
    if (quad % 2 == 1) {
      w0 = _mm512_srli_epi16(w0, 4);
      w1 = _mm512_srli_epi16(w1, 4);
    }
    w0 = _mm512_and_si512(w0, mask);
    w1 = _mm512_and_si512(w1, mask);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m512i four = _mm512_set1_epi32(load4(x + (quad * R + r) * 4));
      sum[r][0] = _mm512_dpbusd_epi32(sum[r][0], w0, four);
      sum[r][1] = _mm512_dpbusd_epi32(sum[r][1], w1, four);
    }
  }
}

// sums += float(a) · (sx · sw) for R rows and 32 columns.
template <int R, Int4ZeroPoints Z>
inline void fold(const uint8_t* x, const __m512i (&dots)[R][2], const uint8_t* chunk, int64_t zero_offset,
                 float* sums) {
#pragma GCC unroll 2
  for (int h = 0; h < 2; ++h) {
    const __m512 scale = _mm512_loadu_ps(reinterpret_cast<const float*>(chunk) + h * 16);
    __m512 zero = _mm512_setzero_ps();
    if (Z == Int4ZeroPoints::kIntegers) zero = bytes_to_floats16(chunk + zero_offset + h * 16);
    if (Z == Int4ZeroPoints::kFloats)
      zero = _mm512_loadu_ps(reinterpret_cast<const float*>(chunk + zero_offset) + h * 16);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      __m512 a = to_floats16(dots[r][h]);
      if (Z != Int4ZeroPoints::kNone) {
        const __m512 sum_x = to_floats16(_mm512_set1_epi32(load4(x + R * 36 + r * 4)));
        a = _mm512_fnmadd_ps(zero, sum_x, a);  // exact where zero is an integer: all are below 2^24
      }
      const __m512 row_scale = _mm512_castsi512_ps(_mm512_set1_epi32(load4(x + R * 40 + r * 4)));
      float* at = sums + r * kPanel + h * 16;
      _mm512_storeu_ps(at, _mm512_fmadd_ps(a, _mm512_mul_ps(row_scale, scale), _mm512_loadu_ps(at)));
    }
  }
}

template <int R, Int4ZeroPoints Z>
void multiply(const Int4DynamicStep& s) {
  const Int4DynamicPacked& w = *s.weights;
  const uint8_t* x = s.rows;
  const uint8_t* chunk = w.panels + s.panel * w.panel_bytes;
  for (int i = 0; i < s.panels * R * kPanel; i += 16) _mm512_storeu_ps(s.sums + i, _mm512_setzero_ps());
  for (int64_t k = 0; k < w.k; k += w.group, chunk += w.chunk_bytes) {
    for (int64_t data = w.data_offset; data < w.chunk_bytes; data += kInt4DynamicBlock * kPanel / 2) {
      for (int p = 0; p < s.panels; ++p) {
        const uint8_t* at = chunk + p * w.panel_bytes;
        __m512i dots[R][2];
        dot<R>(x, at + data, dots);
        fold<R, Z>(x, dots, at, w.zero_offset, s.sums + p * R * kPanel);
      }
      x += R * kInt4DynamicRowBytes;
    }
  }
}

using Multiply = void (*)(const Int4DynamicStep&);
template <Int4ZeroPoints Z>
constexpr Multiply kMultiplyRows[kRows] = {multiply<1, Z>, multiply<2, Z>, multiply<3, Z>,
                                           multiply<4, Z>, multiply<5, Z>, multiply<6, Z>};

}  // namespace

void HALFTONE_AVX512_NAME(int4_dynamic_multiply_avx512vnni)(const Int4DynamicStep& s) {
  using enum Int4ZeroPoints;
  static constexpr const Multiply* kMultiply[] = {kMultiplyRows<kNone>, kMultiplyRows<kIntegers>,
                                                  kMultiplyRows<kFloats>};
  kMultiply[static_cast<int>(s.weights->zero_points)][s.count - 1](s);
}

}  // namespace halftone::kernels
