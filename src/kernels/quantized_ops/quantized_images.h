// Operations of quantized_ops on images of u8, channels last: layout change, pooling, interpolation.
//
//   max pool      largest byte of the window's pixels that lie inside; x and y share scale and zero point
//   average pool  a = Σ (q - z) over the window's pixels inside, exact
//                 y = clamp(rint(float(a) · m + zy), lo, hi)
//                 with m = float(sx / (divisor · sy)), computed in double
//   nearest       y = requantize(x at the source pixel), see source_nearest
//   bilinear      with pixels a b above, c d below and weights u = 1 - w, t = 1 - h, all of (q - z) as
//                 floats:
//                 f = fma(h, fma(w, d, u · c), t · fma(w, b, u · a))
//                 y = clamp(rint(f · m + zy), lo, hi),  m = sx / sy
// The same on every instruction set; within one step of ATen's float operation between dequantize and
// quantize.
#pragma once

#include "kernels/conv/conv_shape.h"
#include "kernels/quantized_ops/quantized_ops.h"

namespace halftone::kernels {

/// x [batch][channels][pixels] floats to y [batch][pixels][y_stride] bytes. The network's entry.
struct QuantizeImages {
  const float* x = nullptr;
  uint8_t* y = nullptr;
  int64_t y_stride = 0;  ///< from one pixel to the next, at least channels
  int64_t batch = 0, channels = 0, pixels = 0;
};
void quantize_to_channels_last(const QuantizedOpsKernel& kernel, const QuantizeImages& images,
                               const QuantTarget& target, ParallelFor& parallel_for);

/// x [batch][in][x_stride], y [batch][out][y_stride] of `channels` bytes, u8. All functions below throw
/// kInvalidArgument for negative sizes, strides below the channels, and parameters out of range.
struct QuantizedImages {
  const uint8_t* x = nullptr;
  int64_t x_stride = 0;
  uint8_t* y = nullptr;
  int64_t y_stride = 0;
  int64_t batch = 0, channels = 0;
  ConvExtent in{1, 1, 1}, out{1, 1, 1};  ///< depth, height, width
  QuantParams from;
  QuantTarget to;
};

struct PoolWindow {
  ConvExtent kernel{1, 1, 1};
  ConvExtent stride{1, 1, 1};
  ConvExtent pad{0, 0, 0};
  ConvExtent dilation{1, 1, 1};  ///< of max pooling
};

/// How average pooling divides, as torch's avg_pool.
struct AverageDivisor {
  bool count_include_pad = true;
  int64_t override_with = 0;  ///< 0: the number of pixels
};

/// The output's size of one dimension; ceil_mode as torch's.
int64_t pool_output(int64_t in, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation,
                    bool ceil_mode);

/// `images.from` and `images.to.params` must be equal. A window without pixels gives `to.lo`.
void quantized_max_pool(const QuantizedOpsKernel& kernel, const QuantizedImages& images,
                        const PoolWindow& window, ParallelFor& parallel_for);
void quantized_average_pool(const QuantizedOpsKernel& kernel, const QuantizedImages& images,
                            const PoolWindow& window, AverageDivisor divisor, ParallelFor& parallel_for);
/// Output o of a dimension averages input [o · in / out, ceil((o + 1) · in / out)); out = 1 is the global
/// average.
void quantized_adaptive_average_pool(const QuantizedOpsKernel& kernel, const QuantizedImages& images,
                                     ParallelFor& parallel_for);

enum class Interpolation { kNearest, kNearestExact, kBilinear, kBilinearAlignedCorners };

/// `scale` of a dimension is torch's scale factor, or 0 if only sizes were given. Bilinear needs depth 1;
/// a 1d linear has height 1.
void quantized_interpolate(const QuantizedOpsKernel& kernel, const QuantizedImages& images,
                           Interpolation mode, const std::array<double, kConvDims>& scale,
                           ParallelFor& parallel_for);

/// Which input element nearest interpolation takes for output `o`.
int64_t source_nearest(int64_t o, int64_t in, int64_t out, double scale, bool exact);

}  // namespace halftone::kernels
