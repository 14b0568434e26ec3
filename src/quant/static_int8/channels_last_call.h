// Pooling and interpolation of halftone::int8_*: geometry and arguments of the kernels. For the operators
// here and for the compiler.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <vector>

#include "kernels/quantized_ops/quantized_images.h"

namespace halftone::static_int8 {

/// An operation from images [batch, channels, …] to images.
struct ChannelsLastCall {
  enum class Kind { kMaxPool, kAveragePool, kAdaptiveAveragePool, kInterpolate } kind = Kind::kMaxPool;
  kernels::QuantizedImages images;  ///< all but x and y; dense
  kernels::PoolWindow window;
  kernels::AverageDivisor divisor;
  kernels::Interpolation interpolation = kernels::Interpolation::kNearest;
  std::array<double, kernels::kConvDims> scale{0, 0, 0};
  std::vector<int64_t> result;  ///< sizes of the result

  /// x and y are dense, channels last.
  void run(const uint8_t* x, uint8_t* y, ParallelFor& parallel_for) const;
};

struct WindowLists {
  c10::IntArrayRef kernel, stride, padding, dilation;
  bool ceil_mode = false;
};

// Each: kInvalidArgument, naming the operator, if the numbers do not fit x.
ChannelsLastCall max_pool_call(c10::IntArrayRef x, const WindowLists& lists);
ChannelsLastCall average_pool_call(c10::IntArrayRef x, const WindowLists& lists,
                                   kernels::AverageDivisor divisor);
ChannelsLastCall adaptive_pool_call(c10::IntArrayRef x, c10::IntArrayRef output_size);
/// `output_size` may be empty: then `scales` say it. `mode`: "nearest", "nearest-exact", "linear" or
/// "linear-aligned".
ChannelsLastCall interpolate_call(c10::IntArrayRef x, c10::IntArrayRef output_size,
                                  c10::ArrayRef<double> scales, std::string_view mode);

}  // namespace halftone::static_int8
