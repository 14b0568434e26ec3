// int8_conv for AVX-512 VNNI: blocks of up to 8 pixels times 32 columns; vpdpbusd multiplies u8 by s8 and
// adds four products in 32 bits, so all ranges are the same to it. Compiled for AVX-512 (or emulated, for
// tests): no inline code from elsewhere.
#include "kernels/common/x86_avx512_include.h"
// After the AVX-512 intrinsics, whichever they are.
#include "kernels/int8_conv/x86_avx2_finish.h"

namespace halftone::kernels {
namespace {

constexpr int kWidePanel = 32;
constexpr int kWideRows = 8;

template <int R>
void multiply_wide(const Int8ConvBlock& b, int32_t* tile) {
  __m512i sum[R][2];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    sum[r][0] = _mm512_loadu_si512(b.out.start);
    sum[r][1] = _mm512_loadu_si512(b.out.start + 16);
  }
  const uint8_t* const* rows = b.rows;
  for (int64_t t = 0; t < b.taps; ++t, rows += b.rows_stride) {
    const int8_t* w = b.panel + b.tap[t] * b.quads * kWidePanel * 4;
    for (int64_t at = 0; at < b.quads * 4; at += 4, w += kWidePanel * 4) {
      const __m512i w0 = _mm512_loadu_si512(w), w1 = _mm512_loadu_si512(w + 64);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        int32_t four;
        __builtin_memcpy(&four, rows[r] + at, 4);
        const __m512i fours = _mm512_set1_epi32(four);
        sum[r][0] = _mm512_dpbusd_epi32(sum[r][0], fours, w0);
        sum[r][1] = _mm512_dpbusd_epi32(sum[r][1], fours, w1);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    _mm512_storeu_si512(tile + r * kWidePanel, sum[r][0]);
    _mm512_storeu_si512(tile + r * kWidePanel + 16, sum[r][1]);
  }
}

using MultiplyWide = void (*)(const Int8ConvBlock&, int32_t*);

}  // namespace

void HALFTONE_AVX512_NAME(int8_conv_avx512vnni)(const Int8ConvBlock& b) {
  static constexpr MultiplyWide kByRows[kWideRows] = {multiply_wide<1>, multiply_wide<2>, multiply_wide<3>,
                                                      multiply_wide<4>, multiply_wide<5>, multiply_wide<6>,
                                                      multiply_wide<7>, multiply_wide<8>};
  const auto* next = reinterpret_cast<const char*>(b.next);
  for (int64_t line = 0; line < b.next_lines; ++line, next += 64) _mm_prefetch(next, _MM_HINT_T1);
  alignas(64) int32_t tile[kWideRows * kWidePanel];
  kByRows[b.count - 1](b, tile);
  for (int r = 0; r < b.count; ++r) {
    for (int c = 0; c < kWidePanel; c += 16) {
      const auto* sums = reinterpret_cast<const __m256i*>(tile + r * kWidePanel + c);
      finish16(b.out, r, c, _mm256_load_si256(sums), _mm256_load_si256(sums + 1));
    }
  }
}

}  // namespace halftone::kernels
