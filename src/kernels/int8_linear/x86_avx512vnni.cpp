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

// vpdpbusd has a latency of 5 and runs twice a cycle: from 5 rows on the sums hide it; below that the
// weights' way from memory does.
template <int R>
void multiply(const uint8_t* x, const int8_t* w, int64_t quads, int32_t* tile) {
  __m512i sum[R][2];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) sum[r][0] = sum[r][1] = _mm512_setzero_si512();
  for (int64_t quad = 0; quad < quads; ++quad, x += R * 4, w += kPanel * 4) {
    const __m512i w0 = _mm512_loadu_si512(w), w1 = _mm512_loadu_si512(w + 64);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      int32_t four;
      __builtin_memcpy(&four, x + r * 4, 4);
      const __m512i fours = _mm512_set1_epi32(four);
      sum[r][0] = _mm512_dpbusd_epi32(sum[r][0], fours, w0);
      sum[r][1] = _mm512_dpbusd_epi32(sum[r][1], fours, w1);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    _mm512_storeu_si512(tile + r * kPanel, sum[r][0]);
    _mm512_storeu_si512(tile + r * kPanel + 16, sum[r][1]);
  }
}

}  // namespace

void HALFTONE_AVX512_NAME(int8_compute_avx512vnni)(const Int8LinearBlock& b) {
  using Multiply = void (*)(const uint8_t*, const int8_t*, int64_t, int32_t*);
  static constexpr Multiply kByCount[kRows] = {multiply<1>, multiply<2>,  multiply<3>,  multiply<4>,
                                               multiply<5>, multiply<6>,  multiply<7>,  multiply<8>,
                                               multiply<9>, multiply<10>, multiply<11>, multiply<12>};
  alignas(64) int32_t tile[kRows * kPanel];
  kByCount[b.count - 1](b.rows, b.panel, b.quads, tile);
  finish_tile(b, tile, kPanel);
}

}  // namespace halftone::kernels
