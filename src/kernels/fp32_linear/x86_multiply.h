// The multiplication of fp32_linear and bf16_linear for x86: a block of rows times one or more panels, sums
// in registers. One template for every vector width and every kind of weights that becomes floats in
// registers for (almost) nothing. Internal linkage: see x86_avx2_math.h. Included after the intrinsics.
//
// `W` says how: Vector (of a half panel), kElementBytes, fetch_ahead<bytes of a step>(step, i, at), zero(),
// load(at, w0, w1) of one k of a panel, broadcast(x), multiply_add(a, b, c), add(a, b), read(floats),
// write(floats, v).
#pragma once

#include "kernels/fp32_linear/fp32_linear.h"

namespace halftone::kernels {
namespace {  // NOLINT(google-build-namespaces)

/// R rows times P panels. A fused multiply-add takes 4 cycles and two start in each: fewer than 8 sums would
/// wait for each other. So few rows of one panel use several sets of sums, one for each of U neighbouring k.
template <typename W, int R, int P,
          int U = P == 1 ? (R == 1   ? 4
                            : R <= 3 ? 2
                                     : 1)
                         : 1>
void multiply(const Fp32LinearStep& s) {
  using Vector = typename W::Vector;
  constexpr int kHalf = sizeof(Vector) / sizeof(float);
  constexpr int64_t kStepBytes = int64_t{2} * kHalf * W::kElementBytes;
  Vector sum[U][P][R][2];
#pragma GCC unroll 16
  for (int i = 0; i < U * P * R * 2; ++i) sum[i / (P * R * 2)][i / (R * 2) % P][i / 2 % R][i % 2] = W::zero();
  const float* x = s.rows;
  const auto* w = static_cast<const unsigned char*>(s.panel);
  int64_t i = 0;
  for (; i + U <= s.k; i += U, x += R * U, w += kStepBytes * U) {
#pragma GCC unroll 16
    for (int u = 0; u < U; ++u) {
#pragma GCC unroll 16
      for (int p = 0; p < P; ++p) {
        const unsigned char* at = w + p * s.panel_stride + u * kStepBytes;
        Vector w0, w1;
        W::load(at, w0, w1);
        // One stream alone does not fill the way to memory; several do without help.
        if (P == 1) W::template fetch_ahead<kStepBytes>(s, i + u, at);
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) {
          const Vector v = W::broadcast(x + u * R + r);
          sum[u][p][r][0] = W::multiply_add(v, w0, sum[u][p][r][0]);
          sum[u][p][r][1] = W::multiply_add(v, w1, sum[u][p][r][1]);
        }
      }
    }
  }
  for (; U > 1 && i < s.k; ++i, x += R, w += kStepBytes) {  // only one panel has several sets of sums
    Vector w0, w1;
    W::load(w, w0, w1);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const Vector v = W::broadcast(x + r);
      sum[0][0][r][0] = W::multiply_add(v, w0, sum[0][0][r][0]);
      sum[0][0][r][1] = W::multiply_add(v, w1, sum[0][0][r][1]);
    }
  }
#pragma GCC unroll 16
  for (int t = 0; t < P * R * 2; ++t) {
    Vector total = sum[0][t / (R * 2)][t / 2 % R][t % 2];
#pragma GCC unroll 16
    for (int u = 1; u < U; ++u) total = W::add(total, sum[u][t / (R * 2)][t / 2 % R][t % 2]);
    float* out = s.sums + t * kHalf;
    W::write(out, s.add ? W::add(W::read(out), total) : total);
  }
}

using MultiplyRows = void (*)(const Fp32LinearStep&);

/// Few rows times several panels, as fp32_panels_at_once says.
template <typename W>
inline constexpr MultiplyRows kMultiplyPanels[] = {multiply<W, 1, 4>, multiply<W, 2, 2>, multiply<W, 3, 2>};

/// Up to 6 rows: twelve sums, what 16 registers hold beside the weights.
template <typename W>
void multiply_up_to_6(const Fp32LinearStep& s) {
  static constexpr MultiplyRows kOnePanel[] = {multiply<W, 1, 1>, multiply<W, 2, 1>, multiply<W, 3, 1>,
                                               multiply<W, 4, 1>, multiply<W, 5, 1>, multiply<W, 6, 1>};
  (s.panels > 1 ? kMultiplyPanels<W> : kOnePanel)[s.count - 1](s);
}

/// Up to 12 rows: 24 sums in 32 registers.
template <typename W>
void multiply_up_to_12(const Fp32LinearStep& s) {
  static constexpr MultiplyRows kOnePanel[] = {multiply<W, 1, 1>,  multiply<W, 2, 1>,  multiply<W, 3, 1>,
                                               multiply<W, 4, 1>,  multiply<W, 5, 1>,  multiply<W, 6, 1>,
                                               multiply<W, 7, 1>,  multiply<W, 8, 1>,  multiply<W, 9, 1>,
                                               multiply<W, 10, 1>, multiply<W, 11, 1>, multiply<W, 12, 1>};
  (s.panels > 1 ? kMultiplyPanels<W> : kOnePanel)[s.count - 1](s);
}

}  // namespace
}  // namespace halftone::kernels
