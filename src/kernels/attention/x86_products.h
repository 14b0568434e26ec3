// attention's two products for x86: blocks of up to 6 rows, the sums in registers. One template for every
// vector width: `W` is Avx2Vectors or Avx512Vectors, for `values` with load(p) and store(p, v) of columns.
// Internal linkage: see x86_avx2_math.h. Included after the intrinsics.
#pragma once

#include "kernels/attention/attention.h"

namespace halftone::kernels {
namespace {  // NOLINT(google-build-namespaces)

/// R rows with a panel of keys. If the panel is one vector, even and odd columns have sums of their own:
/// six would wait for each other.
template <typename W, int R>
void scores(const AttentionScoresStep& s) {
  using Vector = typename W::Vector;
  constexpr int kWidth = sizeof(Vector) / sizeof(float), kVectors = kAttentionPanel / kWidth;
  constexpr int kSets = kVectors == 1 ? 2 : 1;
  Vector sum[kSets][R][kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kSets * R * kVectors; ++i)
    sum[i / (R * kVectors)][i / kVectors % R][i % kVectors] = W::zero();
  const float* q = s.q;
  const float* k = s.panel;
  const auto add = [&](Vector(&to)[R][kVectors]) __attribute__((always_inline)) {
    Vector keys[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) keys[v] = W::read(k + v * kWidth);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Vector x = W::broadcast(q + r);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) to[r][v] = W::multiply_add(x, keys[v], to[r][v]);
    }
    q += R;
    k += kAttentionPanel;
  };
  int64_t c = 0;
  for (; c + kSets <= s.d; c += kSets) {
#pragma GCC unroll 2
    for (int u = 0; u < kSets; ++u) add(sum[u]);
  }
  if (c < s.d) add(sum[0]);
  const Vector scale = W::broadcast(&s.scale);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const Vector total = kSets == 2 ? W::add(sum[0][r][v], sum[kSets - 1][r][v]) : sum[0][r][v];
      W::write(s.out + r * s.out_stride + v * kWidth, W::multiply(total, scale));
    }
  }
}

template <typename W>
void scores_up_to_6(const AttentionScoresStep& s) {
  using Scores = void (*)(const AttentionScoresStep&);
  static constexpr Scores kRows[] = {scores<W, 1>, scores<W, 2>, scores<W, 3>,
                                     scores<W, 4>, scores<W, 5>, scores<W, 6>};
  kRows[s.count - 1](s);
}

/// R rows times C vectors of columns, from `column` on.
template <int R, int C, typename W>
void values(const AttentionValuesStep& s, int64_t column, const W& w) {
  using Vector = typename W::Vector;
  constexpr int kWidth = sizeof(Vector) / sizeof(float);
  Vector sum[R][C];
  float* out = s.out + column;
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
      sum[r][c] = s.before != nullptr
                      ? W::multiply(w.load(out + r * s.out_stride + c * kWidth), W::broadcast(s.before + r))
                      : W::zero();
    }
  }
  const float* v = s.v + column;
  const float* p = s.p;
  for (int64_t j = 0; j < s.keys; ++j, v += s.v_stride, ++p) {
    Vector x[C];
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) x[c] = w.load(v + c * kWidth);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Vector weight = W::broadcast(p + r * s.p_stride);
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) sum[r][c] = W::multiply_add(weight, x[c], sum[r][c]);
    }
  }
  const float one = 1.0f;
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    const Vector after = W::broadcast(s.after != nullptr ? s.after + r : &one);
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
      w.store(out + r * s.out_stride + c * kWidth, W::multiply(sum[r][c], after));
    }
  }
}

}  // namespace
}  // namespace halftone::kernels
