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
template <int R, int U = R == 1   ? 4
                         : R <= 3 ? 2
                                  : 1>
void multiply(const float* x, const float* w, int64_t k, bool add, float* sums) {
  __m512 sum[U][R][2];
#pragma GCC unroll 16
  for (int u = 0; u < U; ++u) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) sum[u][r][0] = sum[u][r][1] = _mm512_setzero_ps();
  }
  int64_t i = 0;
  for (; i + U <= k; i += U, x += R * U, w += kPanel * U) {
#pragma GCC unroll 16
    for (int u = 0; u < U; ++u) {
      const __m512 w0 = _mm512_loadu_ps(w + u * kPanel), w1 = _mm512_loadu_ps(w + u * kPanel + 16);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const __m512 v = _mm512_set1_ps(x[u * R + r]);
        sum[u][r][0] = _mm512_fmadd_ps(v, w0, sum[u][r][0]);
        sum[u][r][1] = _mm512_fmadd_ps(v, w1, sum[u][r][1]);
      }
    }
  }
  for (; i < k; ++i, x += R, w += kPanel) {
    const __m512 w0 = _mm512_loadu_ps(w), w1 = _mm512_loadu_ps(w + 16);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const __m512 v = _mm512_set1_ps(x[r]);
      sum[0][r][0] = _mm512_fmadd_ps(v, w0, sum[0][r][0]);
      sum[0][r][1] = _mm512_fmadd_ps(v, w1, sum[0][r][1]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (int h = 0; h < 2; ++h) {
#pragma GCC unroll 16
      for (int u = 1; u < U; ++u) sum[0][r][h] = _mm512_add_ps(sum[0][r][h], sum[u][r][h]);
      float* at = sums + r * kPanel + h * 16;
      _mm512_storeu_ps(at, add ? _mm512_add_ps(_mm512_loadu_ps(at), sum[0][r][h]) : sum[0][r][h]);
    }
  }
}

}  // namespace

void HALFTONE_AVX512_NAME(fp32_multiply_avx512vnni)(const float* packed, int count, const float* panel,
                                                    int64_t k, bool add, float* sums) {
  using Multiply = void (*)(const float*, const float*, int64_t, bool, float*);
  static constexpr Multiply kByCount[kRows] = {multiply<1>, multiply<2>,  multiply<3>,  multiply<4>,
                                               multiply<5>, multiply<6>,  multiply<7>,  multiply<8>,
                                               multiply<9>, multiply<10>, multiply<11>, multiply<12>};
  kByCount[count - 1](packed, panel, k, add, sums);
}

}  // namespace halftone::kernels
