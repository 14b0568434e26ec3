// The epilogue of convolutions for AVX2, eight channels of a pixel at a time. Internal linkage: see
// x86_avx2_math.h.
#pragma once

#include "kernels/common/x86_avx2_math.h"
#include "kernels/fp32_conv/kernels.h"

namespace halftone::kernels {
namespace {  // NOLINT(google-build-namespaces)

/// min(max(x, lo), hi); both return their second operand when one is NaN, so NaN passes.
inline __m256 conv_clamp8(__m256 x, __m256 lo, __m256 hi) {
  return _mm256_min_ps(hi, _mm256_max_ps(lo, x));
}

inline __m256 conv_hard_sigmoid8(__m256 x) {
  const __m256 shifted = _mm256_add_ps(x, _mm256_set1_ps(3.0f));
  return _mm256_mul_ps(conv_clamp8(shifted, _mm256_setzero_ps(), _mm256_set1_ps(6.0f)),
                       _mm256_set1_ps(1.0f / 6.0f));
}

inline __m256 conv_activate8(__m256 x, const ConvActivate& a) {
  switch (a.kind) {
    case ConvActivation::kRelu:
      return activate8(x, Activation::kRelu);
    case ConvActivation::kClamp:
      return conv_clamp8(x, _mm256_set1_ps(a.lo), _mm256_set1_ps(a.hi));
    case ConvActivation::kSilu:
      return activate8(x, Activation::kSilu);
    case ConvActivation::kGeluErf:
      return activate8(x, Activation::kGeluErf);
    case ConvActivation::kGeluTanh:
      return activate8(x, Activation::kGeluTanh);
    case ConvActivation::kSigmoid:
      return sigmoid_times8(_mm256_set1_ps(1.0f), x);
    case ConvActivation::kHardSigmoid:
      return conv_hard_sigmoid8(x);
    case ConvActivation::kHardSwish:
      return _mm256_mul_ps(x, conv_hard_sigmoid8(x));
    case ConvActivation::kNone:
      break;
  }
  return x;
}

/// Channels [channel, channel + count) of an output pixel, count <= 8.
inline void conv_finish8(__m256 sums, const Fp32ConvTarget& t, int64_t pixel, int64_t channel, int count) {
  if (t.bias != nullptr) sums = _mm256_add_ps(sums, load_part8(t.bias + channel, count));
  if (t.residual != nullptr)
    sums = _mm256_add_ps(sums, load_part8(t.residual + pixel * t.residual_stride + channel, count));
  store_part8(t.out + pixel * t.out_stride + channel, conv_activate8(sums, t.activate), count);
}

/// The same for eight, with the questions answered at compile time but for the rarer activations.
template <ConvActivation A, bool kResidual>
inline void conv_finish_whole8(__m256 sums, __m256 bias, const Fp32ConvTarget& t, int64_t pixel,
                               int64_t channel) {
  sums = _mm256_add_ps(sums, bias);
  if (kResidual)
    sums = _mm256_add_ps(sums, _mm256_loadu_ps(t.residual + pixel * t.residual_stride + channel));
  if (A == ConvActivation::kRelu) {
    sums = activate8(sums, Activation::kRelu);
  } else if (A != ConvActivation::kNone) {
    sums = conv_activate8(sums, t.activate);
  }
  _mm256_storeu_ps(t.out + pixel * t.out_stride + channel, sums);
}

/// x + -0 is x, also for x = -0.
inline __m256 conv_bias8(const Fp32ConvTarget& t, int64_t channel) {
  return t.bias != nullptr ? _mm256_loadu_ps(t.bias + channel) : _mm256_set1_ps(-0.0f);
}

template <ConvActivation A, bool kResidual>
inline void conv_finish_rows_as(const Fp32ConvFinish& f) {
  const Fp32ConvTarget& t = f.target;
  for (int64_t r = 0; r < f.count; ++r) {
    const int64_t pixel = t.pixels[r];
    const float* panel = f.sums + r * f.tile_n;
    for (int64_t o = 0; o < t.channels; o += f.tile_n, panel += f.panel_stride) {
      const int64_t end = t.channels - o < f.tile_n ? t.channels - o : f.tile_n;
      int64_t i = 0;
      for (; i + 8 <= end; i += 8)
        conv_finish_whole8<A, kResidual>(_mm256_load_ps(panel + i), conv_bias8(t, o + i), t, pixel, o + i);
      if (i < end) conv_finish8(_mm256_load_ps(panel + i), t, pixel, o + i, static_cast<int>(end - i));
    }
  }
}

/// Calls f.template operator()<activation, residual>(): kClamp stands for all that are neither none nor relu.
template <typename F>
inline void conv_with_epilogue(const Fp32ConvTarget& t, const F& f) {
  const bool residual = t.residual != nullptr;
  switch (t.activate.kind) {
    case ConvActivation::kNone:
      return residual ? f.template operator()<ConvActivation::kNone, true>()
                      : f.template operator()<ConvActivation::kNone, false>();
    case ConvActivation::kRelu:
      return residual ? f.template operator()<ConvActivation::kRelu, true>()
                      : f.template operator()<ConvActivation::kRelu, false>();
    default:
      return residual ? f.template operator()<ConvActivation::kClamp, true>()
                      : f.template operator()<ConvActivation::kClamp, false>();
  }
}

}  // namespace
}  // namespace halftone::kernels
