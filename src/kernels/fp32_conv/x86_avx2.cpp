// fp32_conv for AVX2: tiles of up to 6 pixels times 16 channels, twelve sums in registers, two fused
// multiply-adds a cycle. Compiled for AVX2: no inline code from elsewhere.
#include "kernels/fp32_conv/x86_avx2_finish.h"
#include "kernels/fp32_conv/x86_conv_multiply.h"
#include "kernels/fp32_linear/x86_avx2_vectors.h"

namespace halftone::kernels {
namespace {

void conv_multiply_avx2(const Fp32ConvStep& s) {
  kConvUpTo6<Avx2Vectors>[s.count - 1](s);
}

// P pixels, V vectors of channels, of which the last has `count` channels.
template <int P, int V>
void depthwise_tile(const Fp32DepthwiseStep& s, int64_t pixel, int64_t channel, int count) {
  __m256 sum[P][V];
#pragma GCC unroll 16
  for (int i = 0; i < P * V; ++i) sum[i / V][i % V] = _mm256_setzero_ps();
  const float* w = s.weights + channel;
  const float* const* rows = s.rows + pixel;
  for (int64_t t = 0; t < s.taps; ++t, w += s.weights_stride, rows += s.rows_stride) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const __m256 weights = _mm256_loadu_ps(w + v * 8);
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) {
        const float* x = rows[p] + channel + v * 8;
        sum[p][v] =
            _mm256_fmadd_ps(v + 1 < V ? _mm256_loadu_ps(x) : load_part8(x, count), weights, sum[p][v]);
      }
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < P * V; ++i)
    conv_finish8(sum[i / V][i % V], s.target, s.target.pixels[pixel + i / V], channel + i % V * 8,
                 i % V + 1 < V ? 8 : count);
}

template <int P>
void depthwise_pixels(const Fp32DepthwiseStep& s, int64_t pixel) {
  const int64_t channels = s.target.channels;
  int64_t c = 0;
  for (; c + 16 <= channels; c += 16) depthwise_tile<P, 2>(s, pixel, c, 8);
  for (; c < channels; c += 8)
    depthwise_tile<P, 1>(s, pixel, c, static_cast<int>(channels - c < 8 ? channels - c : 8));
}

// P pixels of eight channels, which are whole groups of 2 or 4 (the last vector has `count` channels): for
// each channel of a group, it is spread over its group's lanes.
template <int P>
void grouped_tile(const Fp32DepthwiseStep& s, int64_t pixel, int64_t channel, int count) {
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), one = _mm256_set1_epi32(1);
  const __m256i first = _mm256_andnot_si256(_mm256_set1_epi32(static_cast<int>(s.width) - 1), lanes);
  __m256 sum[P];
#pragma GCC unroll 6
  for (int p = 0; p < P; ++p) sum[p] = _mm256_setzero_ps();
  const float* w = s.weights + channel;
  const float* const* rows = s.rows + pixel;
  for (int64_t t = 0; t < s.taps; ++t, rows += s.rows_stride) {
    __m256 x[P];
#pragma GCC unroll 6
    for (int p = 0; p < P; ++p) x[p] = load_part8(rows[p] + channel, count);
    __m256i spread = first;  // of which the instruction reads two bits: a place in half a vector
    for (int64_t c = 0; c < s.width; ++c, w += s.weights_stride, spread = _mm256_add_epi32(spread, one)) {
      const __m256 weights = _mm256_loadu_ps(w);
#pragma GCC unroll 6
      for (int p = 0; p < P; ++p)
        sum[p] = _mm256_fmadd_ps(_mm256_permutevar_ps(x[p], spread), weights, sum[p]);
    }
  }
#pragma GCC unroll 6
  for (int p = 0; p < P; ++p) conv_finish8(sum[p], s.target, s.target.pixels[pixel + p], channel, count);
}

// The same for groups of 8: one vector is one group.
template <int P>
void grouped8_tile(const Fp32DepthwiseStep& s, int64_t pixel, int64_t channel) {
  __m256 sum[P];
#pragma GCC unroll 6
  for (int p = 0; p < P; ++p) sum[p] = _mm256_setzero_ps();
  const float* w = s.weights + channel;
  const float* const* rows = s.rows + pixel;
  for (int64_t t = 0; t < s.taps; ++t, rows += s.rows_stride) {
    const float* x[P];
#pragma GCC unroll 6
    for (int p = 0; p < P; ++p) x[p] = rows[p] + channel;
#pragma GCC unroll 8
    for (int c = 0; c < 8; ++c, w += s.weights_stride) {
      const __m256 weights = _mm256_loadu_ps(w);
#pragma GCC unroll 6
      for (int p = 0; p < P; ++p) sum[p] = _mm256_fmadd_ps(_mm256_broadcast_ss(x[p] + c), weights, sum[p]);
    }
  }
#pragma GCC unroll 6
  for (int p = 0; p < P; ++p) conv_finish8(sum[p], s.target, s.target.pixels[pixel + p], channel, 8);
}

template <int P>
void grouped_pixels(const Fp32DepthwiseStep& s, int64_t pixel) {
  const int64_t channels = s.target.channels;
  for (int64_t c = 0; c < channels; c += 8) {
    if (s.width == 8) {
      grouped8_tile<P>(s, pixel, c);
    } else {
      grouped_tile<P>(s, pixel, c, static_cast<int>(channels - c < 8 ? channels - c : 8));
    }
  }
}

}  // namespace

void conv_depthwise_avx2(const Fp32DepthwiseStep& s) {
  int64_t pixel = 0;
  if (s.width > 1) {
    for (; pixel + 6 <= s.count; pixel += 6) grouped_pixels<6>(s, pixel);
    for (; pixel < s.count; ++pixel) grouped_pixels<1>(s, pixel);
  }
  for (; pixel + 4 <= s.count; pixel += 4) depthwise_pixels<4>(s, pixel);
  for (; pixel < s.count; ++pixel) depthwise_pixels<1>(s, pixel);
}

void conv_finish_avx2(const Fp32ConvFinish& f) {
  conv_with_epilogue(f.target,
                     [&]<ConvActivation A, bool kResidual>() { conv_finish_rows_as<A, kResidual>(f); });
}

const Fp32ConvFunctions kFp32ConvAvx2 = {conv_multiply_avx2,         conv_finish_avx2,
                                         conv_depthwise_avx2,        conv_winograd4_input_avx2,
                                         conv_winograd4_output_avx2, conv_winograd2_input_avx2,
                                         conv_winograd2_output_avx2};

}  // namespace halftone::kernels
