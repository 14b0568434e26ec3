// int8_conv in plain C++: the meaning of the packed layouts, and the kernel of machines that nothing else
// knows.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "kernels/int8_conv/kernels.h"

namespace halftone::kernels {
namespace {

constexpr int kScalarPanel = 16;

// From the exact sum of column c to the output. Unsigned sums, because sums in between may wrap.
void finish_scalar(const Int8ConvOutput& o, int row, int c, uint32_t sum) {
  const Int8ConvArgs& args = *o.args;
  float f = std::fma(static_cast<float>(static_cast<int32_t>(sum)), o.multiplier[c], o.offset[c]);
  const int64_t pixel = o.pixel[row], channel = o.column + c;
  if (args.residual != nullptr) {
    const int q = args.residual[pixel * args.residual_stride + channel];
    f = std::fma(static_cast<float>(q - args.residual_zero_point), args.residual_multiplier, f);
  }
  if (args.out_f32 != nullptr) {
    const float least = args.lo_f32 > f ? args.lo_f32 : f;
    args.out_f32[pixel * args.out_stride + channel] = args.hi_f32 < least ? args.hi_f32 : least;
    return;
  }
  // Clamped before it is an integer; the upper limit is one, so this is the same as after rounding.
  const auto top = static_cast<float>(args.hi - args.out_zero_point);
  f = f < top ? f : top;
  const int rounded = f < -1000.0f ? -1000 : static_cast<int>(std::nearbyint(f));
  args.out[pixel * args.out_stride + channel] =
      static_cast<uint8_t>(std::clamp(rounded + args.out_zero_point, args.lo, args.hi));
}

}  // namespace

void int8_conv_scalar(const Int8ConvBlock& b) {
  const int64_t tap_bytes = b.quads * kScalarPanel * 4;
  for (int r = 0; r < b.count; ++r) {
    uint32_t sum[kScalarPanel];
    for (int c = 0; c < kScalarPanel; ++c) sum[c] = static_cast<uint32_t>(b.out.start[c]);
    for (int64_t t = 0; t < b.taps; ++t) {
      const uint8_t* x = b.rows[t * b.rows_stride + r];
      const int8_t* w = b.panel + b.tap[t] * tap_bytes;
      for (int64_t q = 0; q < b.quads; ++q, x += 4, w += kScalarPanel * 4) {
        for (int c = 0; c < kScalarPanel; ++c) {
          int32_t four = 0;
          for (int i = 0; i < 4; ++i) four += int32_t{x[i]} * w[c * 4 + i];
          sum[c] += static_cast<uint32_t>(four);
        }
      }
    }
    for (int c = 0; c < b.out.columns; ++c) finish_scalar(b.out, r, c, sum[c]);
  }
}

void int8_depthwise_scalar(const Int8DepthwiseBlock& b) {
  for (int r = 0; r < b.count; ++r) {
    const uint8_t* const* rows = b.rows + r * b.pairs * 2;
    for (int c = 0; c < b.out.columns; ++c) {
      const int8_t* panel = b.panels + c / kScalarPanel * b.panel_bytes + c % kScalarPanel * 4;
      int32_t sum = b.out.start[c];
      for (int64_t t = 0; t < b.pairs * 2; ++t) {
        int16_t w;
        std::memcpy(&w, panel + t / 2 * kScalarPanel * 4 + t % 2 * 2, 2);
        sum += w * int32_t{rows[t][c]};
      }
      finish_scalar(b.out, r, c, static_cast<uint32_t>(sum));
    }
  }
}

}  // namespace halftone::kernels
