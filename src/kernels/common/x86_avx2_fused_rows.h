// Few rows times packed weights that become floats in registers: one pass over the weights, nothing expanded
// to memory. For weights whose scale, if any, can wait until the end. Internal linkage: see x86_avx2_math.h.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace halftone::kernels {
namespace {  // NOLINT(google-build-namespaces)

/// Spans of 16 columns in up to four panels.
struct FusedSpan {
  const unsigned char* weights;  ///< of the first panel
  int64_t step_bytes;            ///< from one k to the next
  int64_t panel_bytes;           ///< from one panel to the next
  int panels;
  int64_t k;
  float* sums;  ///< [panels][rows][tile_n], from the span's first column on: written
  int tile_n;
};

// Steps of k before the next panel gets its turn: long enough to pay for loading and storing the sums, short
// enough that all panels are read as streams side by side.
inline constexpr int64_t kFusedSteps = 64;

/// R rows [steps][R] times P panels, added to sums. Weights::load gives 16 floats of one k.
template <typename Weights, int R, int P>
inline void fused_block(const FusedSpan& s, const float* x, const unsigned char* w, int64_t steps,
                        float* sums) {
  __m256 sum[P][R][2];
#pragma GCC unroll 16
  for (int i = 0; i < P * R; ++i) {
    sum[i / R][i % R][0] = _mm256_loadu_ps(sums + i * s.tile_n);
    sum[i / R][i % R][1] = _mm256_loadu_ps(sums + i * s.tile_n + 8);
  }
  for (int64_t k = 0; k < steps; ++k, x += R, w += s.step_bytes) {
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p) {
      __m256 w0, w1;
      Weights::load(w + p * s.panel_bytes, w0, w1);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const __m256 v = _mm256_broadcast_ss(x + r);
        sum[p][r][0] = _mm256_fmadd_ps(v, w0, sum[p][r][0]);
        sum[p][r][1] = _mm256_fmadd_ps(v, w1, sum[p][r][1]);
      }
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < P * R; ++i) {
    _mm256_storeu_ps(sums + i * s.tile_n, sum[i / R][i % R][0]);
    _mm256_storeu_ps(sums + i * s.tile_n + 8, sum[i / R][i % R][1]);
  }
}

/// All of k; P panels at once if so many are left, else one.
template <typename Weights, int R, int P>
void fused_rows(const FusedSpan& s, const float* rows) {
  for (int i = 0; i < s.panels * R; ++i) {
    _mm256_storeu_ps(s.sums + i * s.tile_n, _mm256_setzero_ps());
    _mm256_storeu_ps(s.sums + i * s.tile_n + 8, _mm256_setzero_ps());
  }
  for (int64_t k = 0; k < s.k; k += kFusedSteps) {
    const int64_t steps = s.k - k < kFusedSteps ? s.k - k : kFusedSteps;
    const unsigned char* w = s.weights + k * s.step_bytes;
    int p = 0;
    for (; p + P <= s.panels; p += P)
      fused_block<Weights, R, P>(s, rows + k * R, w + p * s.panel_bytes, steps, s.sums + p * R * s.tile_n);
    for (; p < s.panels; ++p)
      fused_block<Weights, R, 1>(s, rows + k * R, w + p * s.panel_bytes, steps, s.sums + p * R * s.tile_n);
  }
}

/// 1 to 6 rows. A fused multiply-add takes 4 cycles and two start in each: at least 8 sums, at most 12.
template <typename Weights>
void fused_rows(const FusedSpan& s, const float* rows, int count) {
  using Multiply = void (*)(const FusedSpan&, const float*);
  static constexpr Multiply kMultiply[] = {fused_rows<Weights, 1, 4>, fused_rows<Weights, 2, 2>,
                                           fused_rows<Weights, 3, 2>, fused_rows<Weights, 4, 1>,
                                           fused_rows<Weights, 5, 1>, fused_rows<Weights, 6, 1>};
  kMultiply[count - 1](s, rows);
}

}  // namespace
}  // namespace halftone::kernels
