// The transforms of fp32_conv's Winograd kernels for AVX2, eight channels at a time. Compiled for AVX2: no
// inline code from elsewhere.
#include "kernels/fp32_conv/x86_avx2_finish.h"

namespace halftone::kernels {
namespace {

// F(4, 3) with the points 0, ±a, ±b and infinity, a = sqrt(1/2) and b = sqrt(2): so near to 1 they lose a
// third of what 1 and 2 lose, and their squares are plain numbers.
constexpr float kA = 0.70710678118654752f, kB = 1.41421356237309505f;

struct Four {
  static constexpr int kOutputs = 4;
  /// t = Bᵀ d, six to six.
  static void input(const __m256* d, __m256* t) {
    // Row by row the coefficients of the product of (x - point) over the other points. With a² = 1/2, b² =
    // 2, a² · b² = 1 and a² + b² = 5/2 these are, for ±a, (d4 - b² d2) ± a (d3 - b² d1), and for ±b the
    // same with a² instead of b²: the sums are shared by the two signs.
    const __m256 a = _mm256_set1_ps(kA), b = _mm256_set1_ps(kB), half = _mm256_set1_ps(0.5f);
    const __m256 two = _mm256_set1_ps(2.0f), middle = _mm256_set1_ps(2.5f);
    const __m256 d1 = d[1], d2 = d[2], d3 = d[3], d4 = d[4];
    const __m256 even_a = _mm256_fnmadd_ps(two, d2, d4), odd_a = _mm256_fnmadd_ps(two, d1, d3);
    const __m256 even_b = _mm256_fnmadd_ps(half, d2, d4), odd_b = _mm256_fnmadd_ps(half, d1, d3);
    t[0] = _mm256_add_ps(d[0], _mm256_fnmadd_ps(middle, d2, d4));
    t[5] = _mm256_add_ps(d[5], _mm256_fnmadd_ps(middle, d3, d1));
    t[1] = _mm256_fmadd_ps(a, odd_a, even_a);
    t[2] = _mm256_fnmadd_ps(a, odd_a, even_a);
    t[3] = _mm256_fmadd_ps(b, odd_b, even_b);
    t[4] = _mm256_fnmadd_ps(b, odd_b, even_b);
  }
  /// y = Aᵀ p, six to four, `T` apart.
  template <int T>
  static void output(const __m256* p, __m256* y) {
    const __m256 half = _mm256_set1_ps(0.5f), two = _mm256_set1_ps(2.0f);
    // y_k = Σ point^k · p: even powers of ±a and ±b add, odd ones subtract; infinity (p[5]) counts in the
    // last.
    const __m256 s1 = _mm256_add_ps(p[1], p[2]), s2 = _mm256_add_ps(p[3], p[4]);
    const __m256 d1 = _mm256_mul_ps(_mm256_set1_ps(kA), _mm256_sub_ps(p[1], p[2]));
    const __m256 d2 = _mm256_mul_ps(_mm256_set1_ps(kB), _mm256_sub_ps(p[3], p[4]));
    y[0] = _mm256_add_ps(_mm256_add_ps(p[0], s1), s2);
    y[T] = _mm256_add_ps(d1, d2);
    y[2 * T] = _mm256_fmadd_ps(two, s2, _mm256_mul_ps(half, s1));
    y[3 * T] = _mm256_fmadd_ps(two, d2, _mm256_fmadd_ps(half, d1, p[5]));
  }
};

// F(2, 3) with the points 0, 1, -1 and infinity.
struct Two {
  static constexpr int kOutputs = 2;
  static void input(const __m256* d, __m256* t) {
    t[0] = _mm256_sub_ps(d[0], d[2]);
    t[1] = _mm256_add_ps(d[1], d[2]);
    t[2] = _mm256_sub_ps(d[2], d[1]);
    t[3] = _mm256_sub_ps(d[1], d[3]);
  }
  template <int T>
  static void output(const __m256* p, __m256* y) {
    y[0] = _mm256_add_ps(_mm256_add_ps(p[0], p[1]), p[2]);
    y[T] = _mm256_sub_ps(_mm256_sub_ps(p[1], p[2]), p[3]);
  }
};

template <typename F>
void winograd_input(const Fp32WinogradInput& in) {
  constexpr int kPatch = F::kOutputs + 2;
  for (int64_t c = 0; c < in.channels; c += 8) {
    __m256 d[kPatch * kPatch];
#pragma GCC unroll 6
    for (int j = 0; j < kPatch; ++j) {
      __m256 column[kPatch], transformed[kPatch];
#pragma GCC unroll 6
      for (int i = 0; i < kPatch; ++i) column[i] = _mm256_loadu_ps(in.rows[i * kPatch + j] + c);
      F::input(column, transformed);
#pragma GCC unroll 6
      for (int i = 0; i < kPatch; ++i) d[i * kPatch + j] = transformed[i];
    }
    float* v = in.v + c;
#pragma GCC unroll 6
    for (int i = 0; i < kPatch; ++i) {
      __m256 row[kPatch];
      F::input(d + i * kPatch, row);
#pragma GCC unroll 6
      for (int j = 0; j < kPatch; ++j, v += in.v_stride) _mm256_store_ps(v, row[j]);
    }
  }
}

template <typename F, ConvActivation A, bool kResidual>
void winograd_output_as(const Fp32WinogradOutput& o) {
  constexpr int kPatch = F::kOutputs + 2, kOut = F::kOutputs;
  const Fp32ConvTarget& t = o.target;
  for (int64_t c = 0; c < t.channels; c += 8) {
    __m256 half[kOut * kPatch];
    const float* m = o.m + c;
#pragma GCC unroll 6
    for (int i = 0; i < kPatch; ++i) {
      __m256 row[kPatch];
#pragma GCC unroll 6
      for (int j = 0; j < kPatch; ++j, m += o.m_stride) row[j] = _mm256_load_ps(m);
      // Rows first, then columns; the first pass writes its results transposed, so both passes read
      // neighbours.
      F::template output<kPatch>(row, half + i);  // transposed on the way
    }
    const __m256 bias = conv_bias8(t, c);
#pragma GCC unroll 4
    for (int j = 0; j < kOut; ++j) {
      __m256 column[kOut];
      F::template output<1>(half + j * kPatch, column);
#pragma GCC unroll 4
      for (int i = 0; i < kOut; ++i) {
        const int64_t pixel = t.pixels[i * kOut + j];
        if (pixel >= 0) conv_finish_whole8<A, kResidual>(column[i], bias, t, pixel, c);
      }
    }
  }
}

template <typename F>
void winograd_output(const Fp32WinogradOutput& o) {
  conv_with_epilogue(o.target,
                     [&]<ConvActivation A, bool kResidual>() { winograd_output_as<F, A, kResidual>(o); });
}

}  // namespace

void conv_winograd4_input_avx2(const Fp32WinogradInput& in) {
  winograd_input<Four>(in);
}

void conv_winograd4_output_avx2(const Fp32WinogradOutput& out) {
  winograd_output<Four>(out);
}

void conv_winograd2_input_avx2(const Fp32WinogradInput& in) {
  winograd_input<Two>(in);
}

void conv_winograd2_output_avx2(const Fp32WinogradOutput& out) {
  winograd_output<Two>(out);
}

}  // namespace halftone::kernels
