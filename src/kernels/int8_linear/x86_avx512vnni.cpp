// int8_linear for AVX-512 VNNI: blocks of up to 12 rows times 32 columns, 24 sums in registers; vpdpbusd
// multiplies u8 by s8 and adds four products in 32 bits, so weights of 8 and 7 bits are the same to it.
// Compiled for AVX-512 (or emulated, for tests): no inline code from elsewhere.
#include "kernels/common/x86_avx512_include.h"
// After the AVX-512 intrinsics, whichever they are.
#include "kernels/int8_linear/x86_avx2_finish.h"

namespace halftone::kernels {
namespace {

constexpr int kPanel = 32;
constexpr int kRows = 12;

// R rows times P panels. vpdpbusd has a latency of 5 and runs twice a cycle: ten sums hide it.
template <int R, int P>
void multiply(const Int8LinearBlock& b, int32_t* tile) {
  __m512i sum[P][R][2];
#pragma GCC unroll 16
  for (int p = 0; p < P; ++p) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) sum[p][r][0] = sum[p][r][1] = _mm512_setzero_si512();
  }
  const uint8_t* x = b.rows;
  const int8_t* w = b.panel;
  for (int64_t quad = 0; quad < b.quads; ++quad, x += R * 4, w += kPanel * 4) {
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p) {
      const __m512i w0 = _mm512_loadu_si512(w + p * b.panel_bytes),
                    w1 = _mm512_loadu_si512(w + p * b.panel_bytes + 64);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        int32_t four;
        __builtin_memcpy(&four, x + r * 4, 4);
        const __m512i fours = _mm512_set1_epi32(four);
        sum[p][r][0] = _mm512_dpbusd_epi32(sum[p][r][0], fours, w0);
        sum[p][r][1] = _mm512_dpbusd_epi32(sum[p][r][1], fours, w1);
      }
    }
  }
#pragma GCC unroll 16
  for (int p = 0; p < P; ++p) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      _mm512_storeu_si512(tile + (p * R + r) * kPanel, sum[p][r][0]);
      _mm512_storeu_si512(tile + (p * R + r) * kPanel + 16, sum[p][r][1]);
    }
  }
}

}  // namespace

void HALFTONE_AVX512_NAME(int8_compute_avx512vnni)(const Int8LinearBlock& b) {
  static constexpr Multiply kOnePanel[kRows] = {
      multiply<1, 1>, multiply<2, 1>, multiply<3, 1>, multiply<4, 1>,  multiply<5, 1>,  multiply<6, 1>,
      multiply<7, 1>, multiply<8, 1>, multiply<9, 1>, multiply<10, 1>, multiply<11, 1>, multiply<12, 1>};
  static constexpr Multiply kPanels[] = {multiply<1, 4>, multiply<2, 2>, multiply<3, 2>};
  compute(b, kPanel, int8_panels_at_once(b.count), kPanels, kOnePanel);
}

}  // namespace halftone::kernels
