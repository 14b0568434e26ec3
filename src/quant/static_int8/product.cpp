#include "quant/static_int8/product.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>

#include "base/errors.h"
#include "graph/aten/dtype_text.h"
#include "quant/static_int8/layout.h"
#include "quant/weight/linear_call.h"
#include "quant/weight/packing_cache.h"

namespace halftone::static_int8 {
namespace {

/// 7 if no weight is beyond ±64. Remembered with the packed weights: it reads them all.
int weight_bits_of(const at::Tensor& weight) {
  constexpr size_t kBytes = 64;
  const at::Tensor note = packed_block({weight}, {"int8_weight_bits", 1}, kBytes, [&](void* out) {
    const at::Tensor w = weight.contiguous();
    const auto* begin = w.const_data_ptr<int8_t>();
    const auto [lowest, highest] = std::minmax_element(begin, begin + w.numel());
    const bool small = w.numel() == 0 || (*lowest >= -64 && *highest <= 64);
    std::memset(out, 0, kBytes);
    *static_cast<uint8_t*>(out) = small ? 7 : 8;
  });
  return *note.const_data_ptr<uint8_t>();
}

std::string_view kind_of(const kernels::Int8ConvProblem& problem, kernels::Int8ConvTile tile) {
  // Panels of 16 are read by kernels that sum in 16 bits and by the scalar one, which have blocks of their
  // own.
  const bool narrow = tile.n == 16 && !tile.deep &&
                      kernels::int8_conv_layout(problem.shape) != kernels::Int8ConvLayout::kDepthwise;
  if (narrow) return problem.shape.transposed ? "int8_conv_transposed_scalar" : "int8_conv_scalar";
  return problem.shape.transposed ? "int8_conv_transposed" : "int8_conv";
}

at::Tensor packed_conv(const at::Tensor& weight, const kernels::Int8ConvProblem& problem,
                       kernels::Int8ConvTile tile) {
  // What a block was made for stands in the layout: the same weight may be read in several ways.
  const int bits = (problem.weight_bits == 7 ? 2 : 0) + (problem.activation_bits == 7 ? 1 : 0);
  const PackLayout layout{kind_of(problem, tile), static_cast<int>(kernels::kInt8ConvPackVersion), tile.n,
                          static_cast<int>(problem.shape.groups) * 4 + bits};
  const auto pack = [&](void* out) {
    const at::Tensor w = weight.contiguous();
    kernels::pack_int8_conv(problem, w.const_data_ptr<int8_t>(), tile, out);
  };
  const auto check = [&](const void* block) {
    const at::Tensor w = weight.contiguous();
    kernels::check_int8_conv_packed(problem, w.const_data_ptr<int8_t>(), tile, block);
  };
  return packed_block({weight}, layout, kernels::int8_conv_packed_bytes(problem, tile), pack,
                      CheckFunction(check));
}

}  // namespace

void check_product(const ProductSpec& spec) {
  const kernels::ConvShape& shape = spec.shape;
  if (spec.weight.scalar_type() != at::kChar)
    fail(ErrorCode::kInvalidArgument, "{}: the weight must be int8, not {}", spec.name,
         dtype_text(spec.weight.scalar_type()));
  check_part(spec.name, "weight_scale", spec.weight_scale, at::kFloat, {shape.out_channels});
  if (spec.bias.defined()) check_part(spec.name, "bias", spec.bias, at::kFloat, {shape.out_channels});
  if (spec.x_max < spec.x.zero_point || spec.x_max > 255)
    fail(ErrorCode::kInvalidArgument, "{}: x_max {} is below the zero point {} or no uint8", spec.name,
         spec.x_max, spec.x.zero_point);
}

kernels::ConvShape conv_shape_of(const char* name, c10::IntArrayRef x, c10::IntArrayRef weight,
                                 const ConvLists& lists) {
  if (x.size() < 3 || x.size() > 5 || weight.size() != x.size())
    fail(ErrorCode::kInvalidArgument, "{}: x has {} dimensions and the weight {}; both must have 3 to 5",
         name, x.size(), weight.size());
  if (lists.groups < 1 || lists.groups > std::max<int64_t>(1, x[1]))
    fail(ErrorCode::kInvalidArgument, "{}: {} groups of {} channels", name, lists.groups, x[1]);
  const auto dims = static_cast<int64_t>(x.size()) - 2;
  kernels::ConvShape shape;
  shape.batch = x[0];
  shape.in_channels = x[1];
  shape.groups = lists.groups;
  shape.out_channels = lists.transposed ? weight[1] * lists.groups : weight[0];
  shape.in = pixel_extent(x);
  shape.kernel = pixel_extent(weight);
  shape.stride = to_extent(name, "stride", lists.stride, dims, 1);
  shape.pad = to_extent(name, "padding", lists.padding, dims, 0);
  shape.dilation = to_extent(name, "dilation", lists.dilation, dims, 1);
  shape.transposed = lists.transposed;
  const int64_t wanted = lists.transposed ? weight[0] : weight[1] * lists.groups;
  if (wanted != x[1])
    fail(ErrorCode::kInvalidArgument, "{}: x has {} channels and the weight takes {}", name, x[1], wanted);
  shape.out = kernels::conv_output(shape, to_extent(name, "output_padding", lists.output_padding, dims, 0));
  return shape;
}

std::vector<int64_t> conv_result_sizes(const kernels::ConvShape& shape, size_t rank) {
  std::vector<int64_t> sizes = {shape.batch, shape.out_channels};
  const size_t dims = rank - 2;
  for (size_t i = 0; i < dims; ++i) sizes.push_back(shape.out[kernels::kConvDims - dims + i]);
  return sizes;
}

kernels::ConvShape linear_shape(int64_t m, int64_t n, int64_t k) {
  kernels::ConvShape shape;
  shape.batch = m;
  shape.in_channels = k;
  shape.out_channels = n;
  return shape;
}

Product prepare_product(const ProductSpec& spec) {
  check_product(spec);
  Product product;
  product.problem.shape = spec.shape;
  product.problem.weight_bits = weight_bits_of(spec.weight);
  product.problem.activation_bits = spec.x_max <= 127 ? 7 : 8;
  product.kernel = &kernels::choose_int8_conv(product.problem);
  product.block = packed_conv(spec.weight, product.problem, product.kernel->tile);
  const int64_t n = spec.shape.out_channels;
  product.factors = at::empty({2, n}, at::kFloat);
  auto* factors = product.factors.data_ptr<float>();
  const at::Tensor scale = spec.weight_scale.contiguous();
  const at::Tensor bias = spec.bias.defined() ? spec.bias.contiguous() : at::Tensor();
  const float out_scale = spec.out ? spec.out->params.scale : 0.0F;
  kernels::int8_conv_factors(spec.x.scale, {scale.const_data_ptr<float>(), static_cast<size_t>(n)},
                             bias.defined() ? bias.const_data_ptr<float>() : nullptr, out_scale, factors,
                             factors + n);
  kernels::Int8ConvArgs& args = product.args;
  args.x_stride = spec.shape.in_channels;
  args.x_zero_point = spec.x.zero_point;
  args.weights = product.block.const_data_ptr();
  args.multiplier = factors;
  args.offset = factors + n;
  args.out_stride = args.residual_stride = n;
  if (spec.residual) {
    args.residual_zero_point = spec.residual->zero_point;
    args.residual_multiplier =
        spec.out ? spec.residual->scale / spec.out->params.scale : spec.residual->scale;
  }
  if (spec.out) {
    args.out_zero_point = spec.out->params.zero_point;
    args.lo = spec.out->lo;
    args.hi = spec.out->hi;
  }
  return product;
}

}  // namespace halftone::static_int8
