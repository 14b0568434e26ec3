// halftone::conv
#include <ATen/TensorOperators.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "base/errors.h"
#include "compiler/ops/activations.h"
#include "compiler/ops/kernels.h"
#include "graph/aten/dtype_text.h"

namespace halftone::ops {
namespace {

/// Whatever a formula divides by or a kernel walks by.
void check_conv_numbers(const at::Tensor& x, const at::Tensor& weight, const ConvNumbers& how) {
  constexpr int64_t kMax = int64_t{1} << 31;  // products of these do not overflow
  const auto all_within = [](at::IntArrayRef numbers, int64_t least) {
    return std::all_of(numbers.begin(), numbers.end(),
                       [&](int64_t number) { return number >= least && number < kMax; });
  };
  if (!all_within(how.stride, 1) || !all_within(how.dilation, 1) || !all_within(how.padding, 0) ||
      !all_within(how.output_padding, 0))
    fail(ErrorCode::kInvalidArgument,
         "halftone::conv: strides and dilations must be above 0, paddings not below; none may be above {}",
         kMax - 1);
  if (how.groups < 1 || how.groups >= kMax || x.sym_size(1) % how.groups != 0 ||
      weight.sym_size(0) % how.groups != 0)
    fail(ErrorCode::kInvalidArgument, "halftone::conv: {} groups do not divide the channels", how.groups);
  if ((how.transposed ? weight.sym_size(0) : weight.sym_size(1) * how.groups) != x.sym_size(1))
    fail(ErrorCode::kInvalidArgument, "halftone::conv: x has {} channels, the weight takes others",
         c10::str(x.sym_size(1)));
  if (x.scalar_type() != weight.scalar_type())
    fail(ErrorCode::kInvalidArgument, "halftone::conv: x is {}, the weight {}", dtype_text(x.scalar_type()),
         dtype_text(weight.scalar_type()));
}

void check_conv(const at::Tensor& x, const at::Tensor& weight, const ConvNumbers& how) {
  const size_t dims = static_cast<size_t>(x.dim()) - 2;
  if (x.dim() < 3 || x.dim() > 5 || weight.dim() != x.dim())
    fail(ErrorCode::kInvalidArgument,
         "halftone::conv: x and weight must have the same three to five dimensions, not {} and {}", x.dim(),
         weight.dim());
  const bool both_sides = how.padding.size() == 2 * dims && !how.transposed;
  const at::IntArrayRef padding = both_sides ? how.padding.slice(0, dims) : how.padding;
  for (const at::IntArrayRef numbers : {how.stride, padding, how.dilation, how.output_padding}) {
    if (numbers.size() != dims)
      fail(ErrorCode::kInvalidArgument, "halftone::conv: {} numbers where each of {} dimensions has one",
           numbers.size(), dims);
  }
  check_conv_numbers(x, weight, how);
  conv_activation(how.activation);  // refuses a name that is unknown
}

std::vector<c10::SymInt> conv_sizes(const at::Tensor& x, const at::Tensor& weight, const ConvNumbers& how) {
  std::vector<c10::SymInt> sizes = {x.sym_size(0),
                                    how.transposed ? weight.sym_size(1) * how.groups : weight.sym_size(0)};
  const size_t dims = static_cast<size_t>(x.dim()) - 2;
  for (size_t d = 0; d < dims; ++d) {
    const auto at = static_cast<int64_t>(d) + 2;
    const int64_t pads = how.padding[d] + how.padding[how.padding.size() - dims + d];
    const c10::SymInt in = x.sym_size(at), reach = (weight.sym_size(at) - 1) * how.dilation[d] + 1;
    if (!how.transposed && in + pads < reach)
      fail(ErrorCode::kInvalidArgument, "halftone::conv: the kernel is larger than dimension {} of x", at);
    sizes.push_back(how.transposed ? (in - 1) * how.stride[d] - pads + reach + how.output_padding[d]
                                   : (in + pads - reach) / how.stride[d] + 1);
  }
  return sizes;
}

// By the numbers in front, then those behind.
at::Tensor padded(const at::Tensor& x, at::IntArrayRef padding) {
  std::vector<int64_t> pads;  // as ATen wants them: the last dimension first
  for (size_t d = padding.size() / 2; d-- > 0;) {
    pads.push_back(padding[d]);
    pads.push_back(padding[padding.size() / 2 + d]);
  }
  return at::constant_pad_nd(x, pads);
}

}  // namespace

at::Tensor conv_cpu(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias,
                    const OptionalTensor& residual, at::IntArrayRef stride, at::IntArrayRef padding,
                    at::IntArrayRef dilation, bool transposed, at::IntArrayRef output_padding, int64_t groups,
                    c10::string_view activation, double lo, double hi) {
  const ConvNumbers how{stride, padding, dilation, transposed, output_padding, groups, activation, lo, hi};
  check_conv(x, weight, how);
  const std::vector<int64_t> zeros(stride.size(), 0);
  at::Tensor y =
      padding.size() == stride.size()
          ? at::convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
          : at::convolution(padded(x, padding), weight, bias, stride, zeros, dilation, false, zeros, groups);
  if (residual) y = y + *residual;
  return conv_activation(how.activation).apply(y, lo, hi).movedim(1, -1).contiguous().movedim(-1, 1);
}

at::Tensor conv_meta(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor&,
                     const OptionalTensor&, at::IntArrayRef stride, at::IntArrayRef padding,
                     at::IntArrayRef dilation, bool transposed, at::IntArrayRef output_padding,
                     int64_t groups, c10::string_view activation, double lo, double hi) {
  const ConvNumbers how{stride, padding, dilation, transposed, output_padding, groups, activation, lo, hi};
  check_conv(x, weight, how);
  std::vector<c10::SymInt> sizes = conv_sizes(x, weight, how);
  sizes.push_back(sizes[1]);  // the channels come last in memory
  sizes.erase(sizes.begin() + 1);
  return at::empty_symint(sizes, x.options()).movedim(-1, 1);
}

}  // namespace halftone::ops
