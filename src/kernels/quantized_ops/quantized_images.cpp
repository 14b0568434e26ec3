#include "kernels/quantized_ops/quantized_images.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/quantized_ops/checks.h"
#include "kernels/quantized_ops/kernels.h"

namespace halftone::kernels {
namespace {

constexpr int64_t kImagePiece = 32768;  // bytes of output: a few microseconds and more

void check_images(const char* operation, const QuantizedImages& m) {
  check_quant_params(operation, m.from, false);
  check_quant_target(operation, m.to);
  if (m.to.is_signed) fail(ErrorCode::kInvalidArgument, "{}: images are unsigned bytes", operation);
  if (m.batch < 0 || m.channels < 0 || m.x_stride < m.channels || m.y_stride < m.channels)
    fail(ErrorCode::kInvalidArgument, "{}: {} images of {} channels, pixels {} and {} apart", operation,
         m.batch, m.channels, m.x_stride, m.y_stride);
  for (int d = 0; d < kConvDims; ++d)
    if (m.in[d] <= 0 || m.out[d] <= 0 || std::max(m.in[d], m.out[d]) > (int64_t{1} << 29))
      fail(ErrorCode::kInvalidArgument, "{}: a dimension has {} elements, {} in the output", operation,
           m.in[d], m.out[d]);
}

int64_t image_pixels(const ConvExtent& e) {
  return e[0] * e[1] * e[2];
}

// Splits the rows of the output (its last dimension): each(image, depth, height, first pixel).
template <typename Each>
void split_output_rows(const QuantizedImages& m, ParallelFor& parallel_for, Each each) {
  const int64_t rows = m.batch * m.out[0] * m.out[1];
  const int64_t many = std::max<int64_t>(1, kImagePiece / std::max<int64_t>(1, m.out[2] * m.channels));
  parallel_for.run((rows + many - 1) / many, [&](int64_t t, int) {
    for (int64_t r = t * many; r < std::min(rows, (t + 1) * many); ++r)
      each(r / m.out[1] / m.out[0], r / m.out[1] % m.out[0], r % m.out[1], r * m.out[2]);
  });
}

// Input elements [first, first + count · step) of one output element, in one dimension.
struct PoolRange {
  int64_t first, count;
};

// The taps of a window that lie inside.
PoolRange inside(int64_t o, int64_t in, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation) {
  const int64_t start = o * stride - pad;
  const int64_t skipped = start < 0 ? (-start + dilation - 1) / dilation : 0;
  const int64_t first = start + skipped * dilation;
  const int64_t fitting = first < in ? (in - 1 - first) / dilation + 1 : 0;
  return {first, std::max<int64_t>(0, std::min(kernel - skipped, fitting))};
}

PoolPixel pool_pixel(const QuantizedImages& m, int64_t image, const PoolRange (&range)[kConvDims],
                     const ConvExtent& dilation, int64_t pixel) {
  PoolPixel p;
  const int64_t first =
      ((image * m.in[0] + range[0].first) * m.in[1] + range[1].first) * m.in[2] + range[2].first;
  p.count = {range[0].count, range[1].count, range[2].count};
  // A box without pixels is not looked at; its place may lie outside.
  p.x = image_pixels(p.count) == 0 ? m.x : m.x + first * m.x_stride;
  p.step = {dilation[0] * m.in[1] * m.in[2] * m.x_stride, dilation[1] * m.in[2] * m.x_stride,
            dilation[2] * m.x_stride};
  p.channels = m.channels;
  p.y = m.y + pixel * m.y_stride;
  p.zero_point = m.from.zero_point;
  p.to = &m.to;
  return p;
}

void check_window(const char* operation, const QuantizedImages& m, const PoolWindow& w) {
  check_images(operation, m);
  int64_t pixels = 1;
  for (int d = 0; d < kConvDims; ++d) {
    if (w.kernel[d] <= 0 || w.stride[d] <= 0 || w.dilation[d] <= 0 || w.pad[d] < 0 ||
        std::max({w.kernel[d], w.stride[d], w.dilation[d], w.pad[d]}) > (int64_t{1} << 29))
      fail(ErrorCode::kInvalidArgument, "{}: kernel {}, stride {}, padding {}, dilation {}", operation,
           w.kernel[d], w.stride[d], w.pad[d], w.dilation[d]);
    pixels *= std::min(w.kernel[d], m.in[d]);
    if (pixels > kMaxPoolPixels)
      fail(ErrorCode::kInvalidArgument, "{}: a window has more than {} pixels", operation, kMaxPoolPixels);
  }
}

float average_multiplier(const QuantizedImages& m, int64_t divisor) {
  return static_cast<float>(double{m.from.scale} / (static_cast<double>(divisor) * m.to.params.scale));
}

// Calls each(pixel, its ranges) for all output pixels, with range(dimension, output).
template <typename Range, typename Each>
void for_pool_pixels(const QuantizedImages& m, const ConvExtent& dilation, ParallelFor& parallel_for,
                     Range range, Each each) {
  split_output_rows(m, parallel_for, [&](int64_t image, int64_t d, int64_t h, int64_t first) {
    PoolRange ranges[kConvDims] = {range(0, d), range(1, h), {}};
    for (int64_t w = 0; w < m.out[2]; ++w) {
      ranges[2] = range(2, w);
      PoolPixel pixel = pool_pixel(m, image, ranges, dilation, first + w);
      each(pixel, ConvExtent{d, h, w});
    }
  });
}

// Bilinear: two neighbours and the weight of the second.
struct LerpSource {
  int64_t first, second;
  float weight;
};

// Input elements for each output element, as torch computes it.
float source_step(int64_t in, int64_t out, double scale) {
  return scale > 0.0 ? static_cast<float>(1.0 / scale) : static_cast<float>(in) / static_cast<float>(out);
}

// The element at or before a position; a tiny scale factor may put it far outside.
int64_t element_at(float at, int64_t in) {
  return static_cast<int64_t>(std::floor(std::min(at, static_cast<float>(in - 1))));
}

LerpSource source_linear(int64_t o, int64_t in, int64_t out, double scale, bool aligned) {
  if (in == out) return {o, o, 0.0f};
  float at;
  if (aligned) {
    const float step = out > 1 ? static_cast<float>(in - 1) / static_cast<float>(out - 1) : 0.0f;
    at = step * static_cast<float>(o);
  } else {
    at = std::max(0.0f, source_step(in, out, scale) * (static_cast<float>(o) + 0.5f) - 0.5f);
  }
  const int64_t first = element_at(at, in);
  return {first, std::min(first + 1, in - 1), std::clamp(at - static_cast<float>(first), 0.0f, 1.0f)};
}

void interpolate_nearest(const QuantizedOpsKernel& kernel, const QuantizedImages& m, bool exact,
                         const std::array<double, kConvDims>& scale, ParallelFor& parallel_for) {
  const bool copy = m.from == m.to.params && m.to.lo == 0 && m.to.hi == 255;
  split_output_rows(m, parallel_for, [&](int64_t image, int64_t d, int64_t h, int64_t pixel) {
    const int64_t z = source_nearest(d, m.in[0], m.out[0], scale[0], exact);
    const int64_t row =
        (image * m.in[0] + z) * m.in[1] + source_nearest(h, m.in[1], m.out[1], scale[1], exact);
    for (int64_t w = 0; w < m.out[2]; ++w, ++pixel) {
      const uint8_t* x =
          m.x + (row * m.in[2] + source_nearest(w, m.in[2], m.out[2], scale[2], exact)) * m.x_stride;
      uint8_t* y = m.y + pixel * m.y_stride;
      if (copy) {
        std::memcpy(y, x, static_cast<size_t>(m.channels));
      } else {
        kernel.requantize(x, y, m.channels, m.from, m.to);
      }
    }
  });
}

}  // namespace

void quantize_to_channels_last(const QuantizedOpsKernel& kernel, const QuantizeImages& m,
                               const QuantTarget& target, ParallelFor& parallel_for) {
  check_quant_target("quantize", target);
  if (m.batch < 0 || m.channels < 0 || m.pixels < 0 || m.y_stride < m.channels)
    fail(ErrorCode::kInvalidArgument, "quantize: {} images of {} channels and {} pixels, {} apart", m.batch,
         m.channels, m.pixels, m.y_stride);
  const int64_t each = std::max<int64_t>(64, kImagePiece / std::max<int64_t>(1, m.channels));
  const int64_t pieces = (m.pixels + each - 1) / each;
  parallel_for.run(m.batch * pieces, [&](int64_t t, int) {
    const int64_t image = t / pieces, first = t % pieces * each;
    kernel.quantize_to_channels_last(m.x + image * m.channels * m.pixels + first, m.pixels,
                                     m.y + (image * m.pixels + first) * m.y_stride, m.y_stride, m.channels,
                                     std::min(each, m.pixels - first), target);
  });
}

int64_t pool_output(int64_t in, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation,
                    bool ceil_mode) {
  if (in <= 0 || kernel <= 0 || stride <= 0 || dilation <= 0 || pad < 0)
    fail(ErrorCode::kInvalidArgument, "pooling: size {}, kernel {}, stride {}, padding {}, dilation {}", in,
         kernel, stride, pad, dilation);
  const int64_t span = in + 2 * pad - dilation * (kernel - 1) - 1;
  if (span < 0)
    fail(ErrorCode::kInvalidArgument, "pooling: a window of {} is larger than {}", kernel, in + 2 * pad);
  int64_t out = (span + (ceil_mode ? stride - 1 : 0)) / stride + 1;
  // The last window must begin inside or in the padding in front.
  if (ceil_mode && (out - 1) * stride >= in + pad) --out;
  return out;
}

void quantized_max_pool(const QuantizedOpsKernel& kernel, const QuantizedImages& m, const PoolWindow& w,
                        ParallelFor& parallel_for) {
  check_window("quantized max pool", m, w);
  if (m.from != m.to.params)
    fail(ErrorCode::kInvalidArgument,
         "quantized max pool: input and output have different scales or zero points");
  const auto range = [&](int d, int64_t o) {
    return inside(o, m.in[d], w.kernel[d], w.stride[d], w.pad[d], w.dilation[d]);
  };
  for_pool_pixels(m, w.dilation, parallel_for, range,
                  [&](const PoolPixel& pixel, const ConvExtent&) { kernel.max_pool(pixel); });
}

void quantized_average_pool(const QuantizedOpsKernel& kernel, const QuantizedImages& m, const PoolWindow& w,
                            AverageDivisor divisor, ParallelFor& parallel_for) {
  check_window("quantized average pool", m, w);
  if (w.dilation != ConvExtent{1, 1, 1} || divisor.override_with < 0)
    fail(ErrorCode::kInvalidArgument, "quantized average pool: it takes no dilation and no negative divisor");
  const auto range = [&](int d, int64_t o) {
    return inside(o, m.in[d], w.kernel[d], w.stride[d], w.pad[d], 1);
  };
  for_pool_pixels(m, w.dilation, parallel_for, range, [&](PoolPixel& pixel, const ConvExtent& o) {
    int64_t by = divisor.override_with;
    if (by == 0 && divisor.count_include_pad) {
      by = 1;  // padding counts, but not what lies beyond it
      for (int d = 0; d < kConvDims; ++d) {
        const int64_t start = o[d] * w.stride[d] - w.pad[d];
        by *= std::max<int64_t>(1, std::min(start + w.kernel[d], m.in[d] + w.pad[d]) - start);
      }
    } else if (by == 0) {
      by = std::max<int64_t>(1, image_pixels(pixel.count));
    }
    pixel.multiplier = average_multiplier(m, by);
    kernel.average_pool(pixel);
  });
}

void quantized_adaptive_average_pool(const QuantizedOpsKernel& kernel, const QuantizedImages& m,
                                     ParallelFor& parallel_for) {
  check_images("quantized adaptive average pool", m);
  int64_t pixels = 1;
  for (int d = 0; d < kConvDims; ++d) {
    pixels *= m.in[d] / m.out[d] + 2;
    if (pixels > kMaxPoolPixels)
      fail(ErrorCode::kInvalidArgument, "quantized adaptive average pool: a window has more than {} pixels",
           kMaxPoolPixels);
  }
  const auto range = [&](int d, int64_t o) {
    const int64_t first = o * m.in[d] / m.out[d];
    return PoolRange{first, ((o + 1) * m.in[d] + m.out[d] - 1) / m.out[d] - first};
  };
  for_pool_pixels(m, {1, 1, 1}, parallel_for, range, [&](PoolPixel& pixel, const ConvExtent&) {
    pixel.multiplier = average_multiplier(m, image_pixels(pixel.count));
    kernel.average_pool(pixel);
  });
}

int64_t source_nearest(int64_t o, int64_t in, int64_t out, double scale, bool exact) {
  const float step = source_step(in, out, scale);
  if (exact) return element_at(static_cast<float>((static_cast<double>(o) + 0.5) * double{step}), in);
  if (out == in) return o;
  if (out == 2 * in) return o / 2;
  return element_at(static_cast<float>(o) * step, in);
}

void quantized_interpolate(const QuantizedOpsKernel& kernel, const QuantizedImages& m, Interpolation mode,
                           const std::array<double, kConvDims>& scale, ParallelFor& parallel_for) {
  check_images("quantized interpolate", m);
  for (const double s : scale)
    if (!(s >= 0.0) || !std::isfinite(s))
      fail(ErrorCode::kInvalidArgument, "quantized interpolate: the scale factor is {}", s);
  if (mode == Interpolation::kNearest || mode == Interpolation::kNearestExact)
    return interpolate_nearest(kernel, m, mode == Interpolation::kNearestExact, scale, parallel_for);
  if (m.in[0] != 1 || m.out[0] != 1)
    fail(ErrorCode::kInvalidArgument, "quantized interpolate: bilinear takes images without depth, not {}",
         m.in[0]);
  const bool aligned = mode == Interpolation::kBilinearAlignedCorners;
  const float multiplier = m.from.scale / m.to.params.scale;
  split_output_rows(m, parallel_for, [&](int64_t image, int64_t, int64_t h, int64_t pixel) {
    const LerpSource v = source_linear(h, m.in[1], m.out[1], scale[1], aligned);
    const uint8_t* above = m.x + (image * m.in[1] + v.first) * m.in[2] * m.x_stride;
    const uint8_t* below = m.x + (image * m.in[1] + v.second) * m.in[2] * m.x_stride;
    for (int64_t w = 0; w < m.out[2]; ++w, ++pixel) {
      const LerpSource s = source_linear(w, m.in[2], m.out[2], scale[2], aligned);
      kernel.lerp({above + s.first * m.x_stride, above + s.second * m.x_stride, below + s.first * m.x_stride,
                   below + s.second * m.x_stride, s.weight, v.weight, m.channels, m.y + pixel * m.y_stride,
                   m.from.zero_point, multiplier, &m.to});
    }
  });
}

}  // namespace halftone::kernels
