#include "quant/static_int8/channels_last_call.h"

#include <algorithm>
#include <cmath>

#include "base/errors.h"
#include "quant/static_int8/layout.h"

namespace halftone::static_int8 {
namespace {

/// Numbers past this one are refused, so that products of a few of them do not overflow.
constexpr int64_t kMaxPixels = int64_t{1} << 31;

ChannelsLastCall begin_call(const char* name, c10::IntArrayRef x, ChannelsLastCall::Kind kind) {
  if (x.size() < 3 || x.size() > 5)
    fail(ErrorCode::kInvalidArgument, "{}: x must have 3 to 5 dimensions, not {}", name, x.size());
  ChannelsLastCall call;
  call.kind = kind;
  call.images.batch = x[0];
  call.images.channels = call.images.x_stride = call.images.y_stride = x[1];
  call.images.in = pixel_extent(x);
  for (const int64_t size : x) {
    if (size > kMaxPixels) fail(ErrorCode::kInvalidArgument, "{}: x has a size of {}", name, size);
  }
  return call;
}

void end_call(ChannelsLastCall& call, c10::IntArrayRef x) {
  call.result = {x[0], x[1]};
  const size_t dims = x.size() - 2;
  for (size_t i = 0; i < dims; ++i) call.result.push_back(call.images.out[kernels::kConvDims - dims + i]);
}

void check_output(const char* name, const ChannelsLastCall& call) {
  for (const int64_t size : call.images.out) {
    if (size < 1 || size > kMaxPixels)
      fail(ErrorCode::kInvalidArgument, "{}: an output of {} pixels", name, size);
  }
}

ChannelsLastCall window_call(const char* name, c10::IntArrayRef x, const WindowLists& lists,
                             ChannelsLastCall::Kind kind) {
  ChannelsLastCall call = begin_call(name, x, kind);
  const auto dims = static_cast<int64_t>(x.size()) - 2;
  kernels::PoolWindow& window = call.window;
  window.kernel = to_extent(name, "kernel", lists.kernel, dims, 1);
  window.stride = to_extent(name, "stride", lists.stride, dims, 1);
  window.pad = to_extent(name, "padding", lists.padding, dims, 0);
  window.dilation = to_extent(name, "dilation", lists.dilation, dims, 1);
  for (size_t i = 0; i < kernels::kConvDims; ++i) {
    const bool huge = std::max({window.kernel[i], window.stride[i], window.dilation[i]}) > kMaxPixels;
    if (huge || window.kernel[i] < 1 || window.stride[i] < 1 || window.dilation[i] < 1 || window.pad[i] < 0 ||
        window.pad[i] > window.kernel[i] / 2)
      fail(ErrorCode::kInvalidArgument, "{}: kernel {}, stride {}, padding {}, dilation {} do not fit", name,
           window.kernel[i], window.stride[i], window.pad[i], window.dilation[i]);
    call.images.out[i] = kernels::pool_output(call.images.in[i], window.kernel[i], window.stride[i],
                                              window.pad[i], window.dilation[i], lists.ceil_mode);
    if (call.images.out[i] < 1)
      fail(ErrorCode::kInvalidArgument, "{}: the window is larger than the image", name);
  }
  end_call(call, x);
  return call;
}

}  // namespace

void ChannelsLastCall::run(const uint8_t* x, uint8_t* y, ParallelFor& parallel_for) const {
  kernels::QuantizedImages call = images;
  call.x = x;
  call.y = y;
  const kernels::QuantizedOpsKernel& kernel = kernels::choose_quantized_ops();
  switch (kind) {
    case Kind::kMaxPool:
      return kernels::quantized_max_pool(kernel, call, window, parallel_for);
    case Kind::kAveragePool:
      return kernels::quantized_average_pool(kernel, call, window, divisor, parallel_for);
    case Kind::kAdaptiveAveragePool:
      return kernels::quantized_adaptive_average_pool(kernel, call, parallel_for);
    case Kind::kInterpolate:
      return kernels::quantized_interpolate(kernel, call, interpolation, scale, parallel_for);
  }
}

ChannelsLastCall max_pool_call(c10::IntArrayRef x, const WindowLists& lists) {
  return window_call("halftone::int8_max_pool", x, lists, ChannelsLastCall::Kind::kMaxPool);
}

ChannelsLastCall average_pool_call(c10::IntArrayRef x, const WindowLists& lists,
                                   kernels::AverageDivisor divisor) {
  constexpr const char* kName = "halftone::int8_avg_pool";
  ChannelsLastCall call = window_call(kName, x, lists, ChannelsLastCall::Kind::kAveragePool);
  if (divisor.override_with < 0 || divisor.override_with > kMaxPixels)
    fail(ErrorCode::kInvalidArgument, "{}: a divisor of {}", kName, divisor.override_with);
  call.divisor = divisor;
  return call;
}

ChannelsLastCall adaptive_pool_call(c10::IntArrayRef x, c10::IntArrayRef output_size) {
  constexpr const char* kName = "halftone::int8_adaptive_avg_pool";
  ChannelsLastCall call = begin_call(kName, x, ChannelsLastCall::Kind::kAdaptiveAveragePool);
  call.images.out = to_extent(kName, "output_size", output_size, static_cast<int64_t>(x.size()) - 2, 1);
  check_output(kName, call);
  end_call(call, x);
  return call;
}

ChannelsLastCall interpolate_call(c10::IntArrayRef x, c10::IntArrayRef output_size,
                                  c10::ArrayRef<double> scales, std::string_view mode) {
  constexpr const char* kName = "halftone::int8_interpolate";
  ChannelsLastCall call = begin_call(kName, x, ChannelsLastCall::Kind::kInterpolate);
  if (mode == "nearest") {
    call.interpolation = kernels::Interpolation::kNearest;
  } else if (mode == "nearest-exact") {
    call.interpolation = kernels::Interpolation::kNearestExact;
  } else if (mode == "linear") {
    call.interpolation = kernels::Interpolation::kBilinear;
  } else if (mode == "linear-aligned") {
    call.interpolation = kernels::Interpolation::kBilinearAlignedCorners;
  } else {
    fail(ErrorCode::kInvalidArgument, "{}: there is no mode \"{}\"", kName, mode);
  }
  const size_t dims = x.size() - 2;
  if ((output_size.empty() && scales.empty()) || (!scales.empty() && scales.size() != dims))
    fail(ErrorCode::kInvalidArgument, "{}: wants a size or a scale for each of {} dimensions", kName, dims);
  if (!output_size.empty())
    call.images.out = to_extent(kName, "output_size", output_size, static_cast<int64_t>(dims), 1);
  for (size_t i = 0; i < scales.size(); ++i) {
    const size_t at = kernels::kConvDims - dims + i;
    call.scale[at] = scales[i];
    if (!(scales[i] >= 0) || scales[i] > static_cast<double>(kMaxPixels))
      fail(ErrorCode::kInvalidArgument, "{}: a scale of {}", kName, scales[i]);
    if (output_size.empty())
      call.images.out[at] =
          static_cast<int64_t>(std::floor(static_cast<double>(call.images.in[at]) * scales[i]));
  }
  check_output(kName, call);
  end_call(call, x);
  return call;
}

}  // namespace halftone::static_int8
