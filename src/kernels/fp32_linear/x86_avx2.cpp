// fp32_linear for AVX2: blocks of up to 6 rows times 16 columns, twelve sums in registers, two fused
// multiply-adds a cycle. Compiled for AVX2: no inline code from elsewhere.
#include "kernels/common/x86_avx2_epilogue.h"
#include "kernels/fp32_linear/kernels.h"

namespace halftone::kernels {
namespace {

constexpr int kPanel = 16;

// R rows times P panels. A fused multiply-add takes 4 cycles and two start in each: fewer than 8 sums would
// wait for each other. So few rows of one panel use several sets of sums, one for each of U neighbouring k.
template <int R, int P,
          int U = P == 1 ? (R == 1   ? 4
                            : R <= 3 ? 2
                                     : 1)
                         : 1>
void multiply(const Fp32LinearStep& s) {
  __m256 sum[U][P][R][2];
#pragma GCC unroll 16
  for (int i = 0; i < U * P * R * 2; ++i)
    sum[i / (P * R * 2)][i / (R * 2) % P][i / 2 % R][i % 2] = _mm256_setzero_ps();
  const float* x = s.rows;
  const float* w = s.panel;
  int64_t i = 0;
  for (; i + U <= s.k; i += U, x += R * U, w += kPanel * U) {
#pragma GCC unroll 16
    for (int u = 0; u < U; ++u) {
#pragma GCC unroll 16
      for (int p = 0; p < P; ++p) {
        const float* at = w + p * s.panel_stride + u * kPanel;
        const __m256 w0 = _mm256_load_ps(at), w1 = _mm256_load_ps(at + 8);
        // One stream alone does not fill the way to memory; several do without help.
        if (P == 1) {
          _mm_prefetch(reinterpret_cast<const char*>(at) + 1024, _MM_HINT_T0);
          _mm_prefetch(reinterpret_cast<const char*>(s.next) + (i + u) * s.next_step, _MM_HINT_T1);
        }
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) {
          const __m256 v = _mm256_broadcast_ss(x + u * R + r);
          sum[u][p][r][0] = _mm256_fmadd_ps(v, w0, sum[u][p][r][0]);
          sum[u][p][r][1] = _mm256_fmadd_ps(v, w1, sum[u][p][r][1]);
        }
      }
    }
  }
  for (; U > 1 && i < s.k; ++i, x += R, w += kPanel) {  // only one panel has several sets of sums
    const __m256 w0 = _mm256_load_ps(w), w1 = _mm256_load_ps(w + 8);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const __m256 v = _mm256_broadcast_ss(x + r);
      sum[0][0][r][0] = _mm256_fmadd_ps(v, w0, sum[0][0][r][0]);
      sum[0][0][r][1] = _mm256_fmadd_ps(v, w1, sum[0][0][r][1]);
    }
  }
#pragma GCC unroll 16
  for (int t = 0; t < P * R * 2; ++t) {
    __m256 total = sum[0][t / (R * 2)][t / 2 % R][t % 2];
#pragma GCC unroll 16
    for (int u = 1; u < U; ++u) total = _mm256_add_ps(total, sum[u][t / (R * 2)][t / 2 % R][t % 2]);
    float* out = s.sums + t * 8;
    _mm256_store_ps(out, s.add ? _mm256_add_ps(_mm256_load_ps(out), total) : total);
  }
}

// Columns [0, k) of 4, 2 or 1 rows into every `count`-th place.
void interleave4(const float* x, int64_t stride, int count, int64_t k, float* out) {
  int64_t i = 0;
  for (; i + 4 <= k; i += 4) {
    __m128 a = _mm_loadu_ps(x + i), b = _mm_loadu_ps(x + stride + i);
    __m128 c = _mm_loadu_ps(x + 2 * stride + i), d = _mm_loadu_ps(x + 3 * stride + i);
    _MM_TRANSPOSE4_PS(a, b, c, d);
    _mm_storeu_ps(out + i * count, a);
    _mm_storeu_ps(out + (i + 1) * count, b);
    _mm_storeu_ps(out + (i + 2) * count, c);
    _mm_storeu_ps(out + (i + 3) * count, d);
  }
  for (; i < k; ++i) {
    for (int r = 0; r < 4; ++r) out[i * count + r] = x[r * stride + i];
  }
}

void interleave2(const float* x, int64_t stride, int count, int64_t k, float* out) {
  int64_t i = 0;
  for (; i + 4 <= k; i += 4) {
    const __m128 a = _mm_loadu_ps(x + i), b = _mm_loadu_ps(x + stride + i);
    const __m128 lo = _mm_unpacklo_ps(a, b), hi = _mm_unpackhi_ps(a, b);
    _mm_storel_pi(reinterpret_cast<__m64*>(out + i * count), lo);
    _mm_storeh_pi(reinterpret_cast<__m64*>(out + (i + 1) * count), lo);
    _mm_storel_pi(reinterpret_cast<__m64*>(out + (i + 2) * count), hi);
    _mm_storeh_pi(reinterpret_cast<__m64*>(out + (i + 3) * count), hi);
  }
  for (; i < k; ++i) {
    out[i * count] = x[i];
    out[i * count + 1] = x[stride + i];
  }
}

inline void finish(const Fp32LinearTile& t, int width) {
  for (int r = 0; r < t.rows; ++r) {
    for (int c = 0; c < t.columns; c += 8) {
      finish8(_mm256_load_ps(t.sums + r * width + c), *t.epilogue, t.row + r, t.column + c, t.columns - c);
    }
  }
}

}  // namespace

void fp32_pack_rows_avx2(const float* x, int64_t stride, int count, int64_t k, float* packed) {
  int r = 0;
  for (; r + 4 <= count; r += 4) interleave4(x + r * stride, stride, count, k, packed + r);
  if (r + 2 <= count) {
    interleave2(x + r * stride, stride, count, k, packed + r);
    r += 2;
  }
  if (r < count) {
    for (int64_t i = 0; i < k; ++i) packed[i * count + r] = x[r * stride + i];
  }
}

void fp32_multiply_avx2(const Fp32LinearStep& s) {
  using Multiply = void (*)(const Fp32LinearStep&);
  static constexpr Multiply kOnePanel[] = {multiply<1, 1>, multiply<2, 1>, multiply<3, 1>,
                                           multiply<4, 1>, multiply<5, 1>, multiply<6, 1>};
  static constexpr Multiply kPanels[] = {multiply<1, 4>, multiply<2, 2>, multiply<3, 2>};
  (s.panels > 1 ? kPanels : kOnePanel)[s.count - 1](s);
}

void fp32_finish_16_avx2(const Fp32LinearTile& tile) {
  finish(tile, 16);
}

void fp32_finish_32_avx2(const Fp32LinearTile& tile) {
  finish(tile, 32);
}

}  // namespace halftone::kernels
