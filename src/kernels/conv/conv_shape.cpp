#include "kernels/conv/conv_shape.h"

#include <algorithm>
#include <initializer_list>
#include <limits>

#include "base/checked.h"
#include "base/errors.h"

namespace halftone::kernels {
namespace {

constexpr const char* kConvDimNames[kConvDims] = {"depth", "height", "width"};
constexpr int64_t kMaxConvElements = int64_t{1} << 61;

void check_conv_extents(const char* operation, const ConvShape& s) {
  for (int d = 0; d < kConvDims; ++d) {
    const auto bad = [&](const char* what, int64_t value) {
      fail(ErrorCode::kInvalidArgument, "{}: {} of {} is {}", operation, what, kConvDimNames[d], value);
    };
    if (s.in[d] < 0) bad("the input's size", s.in[d]);
    if (s.kernel[d] <= 0) bad("the kernel's size", s.kernel[d]);
    if (s.stride[d] <= 0) bad("the stride", s.stride[d]);
    if (s.dilation[d] <= 0) bad("the dilation", s.dilation[d]);
    if (s.pad[d] < 0) bad("the padding", s.pad[d]);
    // Far from any real model, and small enough that positions are computed without overflow.
    for (int64_t v : {s.in[d], s.kernel[d], s.stride[d], s.dilation[d], s.pad[d]})
      if (v > std::numeric_limits<int32_t>::max() / 4) bad("a number", v);
  }
}

void check_conv_channels(const char* operation, const ConvShape& s) {
  if (s.batch < 0) fail(ErrorCode::kInvalidArgument, "{}: the batch is {}", operation, s.batch);
  if (s.in_channels <= 0 || s.out_channels <= 0 || s.groups <= 0)
    fail(ErrorCode::kInvalidArgument, "{}: {} input channels, {} output channels and {} groups", operation,
         s.in_channels, s.out_channels, s.groups);
  if (s.in_channels % s.groups != 0 || s.out_channels % s.groups != 0)
    fail(ErrorCode::kInvalidArgument, "{}: {} groups do not divide {} input and {} output channels",
         operation, s.groups, s.in_channels, s.out_channels);
}

void check_conv_product(const char* operation, const char* what, std::initializer_list<int64_t> factors) {
  int64_t product = 1;
  for (int64_t factor : factors) {
    const auto next = checked_mul(product, factor);
    if (!next || *next > kMaxConvElements)
      fail(ErrorCode::kInvalidArgument, "{}: the {} has too many elements", operation, what);
    product = *next;
  }
}

}  // namespace

ConvExtent conv_output(const ConvShape& s, const ConvExtent& output_padding) {
  check_conv_channels("convolution", s);
  check_conv_extents("convolution", s);
  ConvExtent out{};
  for (int d = 0; d < kConvDims; ++d) {
    const int64_t reach = (s.kernel[d] - 1) * s.dilation[d] + 1;
    if (s.transposed) {
      if (output_padding[d] < 0 || output_padding[d] >= std::max(s.stride[d], s.dilation[d]))
        fail(ErrorCode::kInvalidArgument,
             "convolution: the output padding of {} is {}, not less than stride or dilation",
             kConvDimNames[d], output_padding[d]);
      out[d] = (s.in[d] - 1) * s.stride[d] - 2 * s.pad[d] + reach + output_padding[d];
    } else {
      const int64_t span = s.in[d] + 2 * s.pad[d] - reach;
      out[d] = span < 0 ? 0 : span / s.stride[d] + 1;
    }
    if (out[d] <= 0)
      fail(ErrorCode::kInvalidArgument,
           "convolution: the kernel reaches over {} elements of {}, the padded input has {}", reach,
           kConvDimNames[d], s.in[d] + 2 * s.pad[d]);
  }
  return out;
}

void check_conv_shape(const char* operation, const ConvShape& s) {
  check_conv_channels(operation, s);
  check_conv_extents(operation, s);
  for (int d = 0; d < kConvDims; ++d)
    if (s.out[d] <= 0 || s.out[d] > std::numeric_limits<int32_t>::max() / 4)
      fail(ErrorCode::kInvalidArgument, "{}: the output's {} is {}", operation, kConvDimNames[d], s.out[d]);
  check_conv_product(operation, "input", {s.batch, s.in[0], s.in[1], s.in[2], s.in_channels});
  check_conv_product(operation, "output", {s.batch, s.out[0], s.out[1], s.out[2], s.out_channels});
  check_conv_product(operation, "weight",
                     {s.kernel[0], s.kernel[1], s.kernel[2], s.in_channels, s.out_channels});
}

}  // namespace halftone::kernels
