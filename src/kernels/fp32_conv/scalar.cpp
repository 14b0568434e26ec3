// fp32_conv in plain C++.
#include "kernels/fp32_conv/kernels.h"

namespace halftone::kernels {
namespace {

void conv_multiply_scalar(const Fp32ConvStep& s) {
  for (int r = 0; r < s.count; ++r) {
    float row[kFp32ConvTile] = {};
    for (int64_t t = 0; t < s.taps; ++t) {
      const float* x = s.rows[t * s.rows_stride + r] + s.channel;
      const float* w = s.panel + t * s.tap_stride;
      for (int64_t c = 0; c < s.channels; ++c, w += kFp32ConvTile)
        for (int o = 0; o < kFp32ConvTile; ++o) row[o] += x[c] * w[o];
    }
    float* sums = s.sums + r * s.sums_stride;
    for (int o = 0; o < kFp32ConvTile; ++o) sums[o] = s.add ? sums[o] + row[o] : row[o];
  }
}

void conv_finish1(float sum, const Fp32ConvTarget& t, int64_t pixel, int64_t channel) {
  if (t.bias != nullptr) sum += t.bias[channel];
  if (t.residual != nullptr) sum += t.residual[pixel * t.residual_stride + channel];
  t.out[pixel * t.out_stride + channel] = conv_activate(sum, t.activate);
}

void conv_finish_scalar(const Fp32ConvFinish& f) {
  for (int64_t r = 0; r < f.count; ++r) {
    for (int64_t o = 0; o < f.target.channels; ++o) {
      const float* sums = f.sums + o / f.tile_n * f.panel_stride + r * f.tile_n;
      conv_finish1(sums[o % f.tile_n], f.target, f.target.pixels[r], o);
    }
  }
}

void conv_depthwise_scalar(const Fp32DepthwiseStep& s) {
  for (int64_t r = 0; r < s.count; ++r) {
    for (int64_t c = 0; c < s.target.channels; ++c) {
      float sum = 0.0f;
      for (int64_t i = 0; i < s.taps * s.width; ++i) {
        const float* x = s.rows[i / s.width * s.rows_stride + r] + c / s.width * s.width;
        sum += x[i % s.width] * s.weights[i * s.weights_stride + c];
      }
      conv_finish1(sum, s.target, s.target.pixels[r], c);
    }
  }
}

}  // namespace

// No Winograd: its gain is in vectors.
const Fp32ConvFunctions kFp32ConvScalar = {
    conv_multiply_scalar, conv_finish_scalar, conv_depthwise_scalar, nullptr, nullptr, nullptr, nullptr};

}  // namespace halftone::kernels
