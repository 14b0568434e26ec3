// The multiplication of fp32_conv for x86: a tile of pixels times one panel, sums in registers. One template
// for every vector width; `W` is Avx2Vectors or Avx512Vectors. Internal linkage: see x86_avx2_math.h.
// Included after the intrinsics.
#pragma once

#include "kernels/fp32_conv/kernels.h"

namespace halftone::kernels {
namespace {  // NOLINT(google-build-namespaces)

/// R pixels. A fused multiply-add takes 4 cycles and two start in each: fewer than 8 sums would wait for each
/// other, so few pixels use several sets of sums, one for each of U neighbouring channels.
template <typename W, int R, int U>
void conv_multiply_rows(const Fp32ConvStep& s) {
  using Vector = typename W::Vector;
  constexpr int kHalf = sizeof(Vector) / sizeof(float);
  Vector sum[U][R][2];
#pragma GCC unroll 32
  for (int i = 0; i < U * R * 2; ++i) sum[i / (R * 2)][i / 2 % R][i % 2] = W::zero();
  const char* next = reinterpret_cast<const char*>(s.next);
  const int64_t channels = s.channels;
  for (int64_t t = 0; t < s.taps; ++t) {
    const float* x[R];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) x[r] = s.rows[t * s.rows_stride + r] + s.channel;
    const float* w = s.panel + t * s.tap_stride;
    int64_t c = 0;
    for (; c + U <= channels; c += U) {
#pragma GCC unroll 8
      for (int u = 0; u < U; ++u, w += 2 * kHalf) {
        const Vector w0 = W::read(w), w1 = W::read(w + kHalf);
        _mm_prefetch(next, _MM_HINT_T1);
        next += s.next_step;
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) {
          const Vector v = W::broadcast(x[r] + c + u);
          sum[u][r][0] = W::multiply_add(v, w0, sum[u][r][0]);
          sum[u][r][1] = W::multiply_add(v, w1, sum[u][r][1]);
        }
      }
    }
    for (; U > 1 && c < channels; ++c, w += 2 * kHalf) {
      const Vector w0 = W::read(w), w1 = W::read(w + kHalf);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const Vector v = W::broadcast(x[r] + c);
        sum[0][r][0] = W::multiply_add(v, w0, sum[0][r][0]);
        sum[0][r][1] = W::multiply_add(v, w1, sum[0][r][1]);
      }
    }
  }
#pragma GCC unroll 32
  for (int i = 0; i < R * 2; ++i) {
    Vector total = sum[0][i / 2][i % 2];
#pragma GCC unroll 8
    for (int u = 1; u < U; ++u) total = W::add(total, sum[u][i / 2][i % 2]);
    float* out = s.sums + i / 2 * s.sums_stride + i % 2 * kHalf;
    W::write(out, s.add ? W::add(W::read(out), total) : total);
  }
}

using ConvMultiplyRows = void (*)(const Fp32ConvStep&);

/// Up to 6 pixels: twelve sums, what 16 registers hold beside the weights.
template <typename W>
inline constexpr ConvMultiplyRows kConvUpTo6[] = {conv_multiply_rows<W, 1, 4>, conv_multiply_rows<W, 2, 2>,
                                                  conv_multiply_rows<W, 3, 2>, conv_multiply_rows<W, 4, 1>,
                                                  conv_multiply_rows<W, 5, 1>, conv_multiply_rows<W, 6, 1>};

}  // namespace
}  // namespace halftone::kernels
