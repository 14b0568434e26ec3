// fp32_linear for AVX-512: blocks of up to 12 rows times 32 columns, 24 sums in registers.
// Compiled for AVX-512 (or emulated, for tests): no inline code from elsewhere.
#include "kernels/common/x86_avx512_include.h"
// After the AVX-512 intrinsics, whichever they are.
#include "kernels/fp32_linear/kernels.h"

namespace halftone::kernels {
namespace {

constexpr int kPanel = 32;
constexpr int kRows = 12;

// As in x86_avx2.cpp: at least 8 sums, or they wait for each other.
template <int R, int P,
          int U = P == 1 ? (R == 1   ? 4
                            : R <= 3 ? 2
                                     : 1)
                         : 1>
void multiply(const Fp32LinearStep& s) {
  __m512 sum[U][P][R][2];
#pragma GCC unroll 16
  for (int i = 0; i < U * P * R * 2; ++i)
    sum[i / (P * R * 2)][i / (R * 2) % P][i / 2 % R][i % 2] = _mm512_setzero_ps();
  const float* x = s.rows;
  const float* w = s.panel;
  int64_t i = 0;
  for (; i + U <= s.k; i += U, x += R * U, w += kPanel * U) {
#pragma GCC unroll 16
    for (int u = 0; u < U; ++u) {
#pragma GCC unroll 16
      for (int p = 0; p < P; ++p) {
        const float* at = w + p * s.panel_stride + u * kPanel;
        const __m512 w0 = _mm512_loadu_ps(at), w1 = _mm512_loadu_ps(at + 16);
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) {
          const __m512 v = _mm512_set1_ps(x[u * R + r]);
          sum[u][p][r][0] = _mm512_fmadd_ps(v, w0, sum[u][p][r][0]);
          sum[u][p][r][1] = _mm512_fmadd_ps(v, w1, sum[u][p][r][1]);
        }
      }
    }
  }
  for (; U > 1 && i < s.k; ++i, x += R, w += kPanel) {  // only one panel has several sets of sums
    const __m512 w0 = _mm512_loadu_ps(w), w1 = _mm512_loadu_ps(w + 16);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const __m512 v = _mm512_set1_ps(x[r]);
      sum[0][0][r][0] = _mm512_fmadd_ps(v, w0, sum[0][0][r][0]);
      sum[0][0][r][1] = _mm512_fmadd_ps(v, w1, sum[0][0][r][1]);
    }
  }
#pragma GCC unroll 16
  for (int t = 0; t < P * R * 2; ++t) {
    __m512 total = sum[0][t / (R * 2)][t / 2 % R][t % 2];
#pragma GCC unroll 16
    for (int u = 1; u < U; ++u) total = _mm512_add_ps(total, sum[u][t / (R * 2)][t / 2 % R][t % 2]);
    float* out = s.sums + t * 16;
    _mm512_storeu_ps(out, s.add ? _mm512_add_ps(_mm512_loadu_ps(out), total) : total);
  }
}

}  // namespace

void HALFTONE_AVX512_NAME(fp32_multiply_avx512vnni)(const Fp32LinearStep& s) {
  using Multiply = void (*)(const Fp32LinearStep&);
  static constexpr Multiply kOnePanel[kRows] = {
      multiply<1, 1>, multiply<2, 1>, multiply<3, 1>, multiply<4, 1>,  multiply<5, 1>,  multiply<6, 1>,
      multiply<7, 1>, multiply<8, 1>, multiply<9, 1>, multiply<10, 1>, multiply<11, 1>, multiply<12, 1>};
  static constexpr Multiply kPanels[] = {multiply<1, 4>, multiply<2, 2>, multiply<3, 2>};
  (s.panels > 1 ? kPanels : kOnePanel)[s.count - 1](s);
}

}  // namespace halftone::kernels
