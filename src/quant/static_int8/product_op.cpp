// halftone::int8_conv and halftone::int8_static_linear
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "base/errors.h"
#include "graph/aten/aten_parallel_for.h"
#include "quant/static_int8/layout.h"
#include "quant/static_int8/operators.h"
#include "quant/static_int8/product.h"

namespace halftone::static_int8 {
namespace {

using OptionalTensor = std::optional<at::Tensor>;
constexpr const char* kConvName = "halftone::int8_conv";
constexpr const char* kLinearName = "halftone::int8_static_linear";

/// The arguments that both operators end with.
struct Numbers {
  double x_scale;
  int64_t x_zero_point, x_max;
  double residual_scale;
  int64_t residual_zero_point;
  bool float_output;
  double out_scale;
  int64_t out_zero_point, out_min, out_max;
};

ProductSpec product_spec(const char* name, const kernels::ConvShape& shape, const at::Tensor& weight,
                         const at::Tensor& weight_scale, const OptionalTensor& bias, bool with_residual,
                         const Numbers& numbers) {
  ProductSpec spec{name, shape, weight, weight_scale, bias.value_or(at::Tensor())};
  spec.x = to_params(name, numbers.x_scale, numbers.x_zero_point);
  spec.x_max = numbers.x_max;
  if (with_residual) spec.residual = to_params(name, numbers.residual_scale, numbers.residual_zero_point);
  if (!numbers.float_output) {
    spec.out = to_target(name, numbers.out_scale, numbers.out_zero_point, numbers.out_min, numbers.out_max);
  }
  return spec;
}

/// Rows in, rows out: x, residual and result are dense, channels last.
void run_product(Product& product, const at::Tensor& x, const at::Tensor& residual, const at::Tensor& out) {
  AtenParallelFor parallel_for;
  kernels::Int8ConvArgs args = product.args;
  args.x = x.const_data_ptr<uint8_t>();
  if (residual.defined()) args.residual = residual.const_data_ptr<uint8_t>();
  if (out.scalar_type() == at::kByte) {
    args.out = out.data_ptr<uint8_t>();
  } else {
    args.out_f32 = out.data_ptr<float>();
  }
  args.workspace_bytes =
      kernels::int8_conv_workspace_bytes(*product.kernel, product.problem, parallel_for.threads());
  const at::Tensor workspace = at::empty({static_cast<int64_t>(args.workspace_bytes)}, at::kByte);
  args.workspace = workspace.data_ptr();
  kernels::int8_conv(*product.kernel, product.problem, args, parallel_for);
}

void check_residual(const char* name, const at::Tensor& residual, c10::IntArrayRef sizes) {
  check_bytes(name, "residual", residual);
  if (residual.sizes() != sizes)
    fail(ErrorCode::kInvalidArgument, "{}: the residual has other sizes than the result", name);
}

at::ScalarType result_dtype(bool float_output) {
  return float_output ? at::kFloat : at::kByte;
}

at::Tensor conv_cpu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& weight_scale,
                    const OptionalTensor& bias, const OptionalTensor& residual, at::IntArrayRef stride,
                    at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                    at::IntArrayRef output_padding, int64_t groups, double x_scale, int64_t x_zero_point,
                    int64_t x_max, double residual_scale, int64_t residual_zero_point, bool float_output,
                    double out_scale, int64_t out_zero_point, int64_t out_min, int64_t out_max) {
  check_images(kConvName, "x", x);
  const kernels::ConvShape shape = conv_shape_of(
      kConvName, x.sizes(), weight.sizes(), {stride, padding, dilation, output_padding, transposed, groups});
  const std::vector<int64_t> sizes = conv_result_sizes(shape, static_cast<size_t>(x.dim()));
  if (residual) check_residual(kConvName, *residual, sizes);
  Product product =
      prepare_product(product_spec(kConvName, shape, weight, weight_scale, bias, residual.has_value(),
                                   {x_scale, x_zero_point, x_max, residual_scale, residual_zero_point,
                                    float_output, out_scale, out_zero_point, out_min, out_max}));
  const at::Tensor out = empty_channels_last(sizes, x.options().dtype(result_dtype(float_output)));
  run_product(product, channels_last_rows(x), residual ? channels_last_rows(*residual) : at::Tensor(), out);
  return out;
}

at::Tensor conv_meta(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& weight_scale,
                     const OptionalTensor& bias, const OptionalTensor& residual, at::IntArrayRef stride,
                     at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                     at::IntArrayRef output_padding, int64_t groups, double x_scale, int64_t x_zero_point,
                     int64_t x_max, double residual_scale, int64_t residual_zero_point, bool float_output,
                     double out_scale, int64_t out_zero_point, int64_t out_min, int64_t out_max) {
  check_images(kConvName, "x", x);
  const kernels::ConvShape shape = conv_shape_of(
      kConvName, x.sizes(), weight.sizes(), {stride, padding, dilation, output_padding, transposed, groups});
  const std::vector<int64_t> sizes = conv_result_sizes(shape, static_cast<size_t>(x.dim()));
  if (residual) check_residual(kConvName, *residual, sizes);
  check_product(product_spec(kConvName, shape, weight, weight_scale, bias, residual.has_value(),
                             {x_scale, x_zero_point, x_max, residual_scale, residual_zero_point, float_output,
                              out_scale, out_zero_point, out_min, out_max}));
  return empty_channels_last(sizes, x.options().dtype(result_dtype(float_output)));
}

std::vector<int64_t> linear_result_sizes(const at::Tensor& x, const at::Tensor& weight) {
  if (x.dim() < 1 || weight.dim() != 2 || x.size(-1) != weight.size(1))
    fail(ErrorCode::kInvalidArgument, "{}: x must end in as many elements as the weight has columns",
         kLinearName);
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = weight.size(0);
  return sizes;
}

at::Tensor linear_cpu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& weight_scale,
                      const OptionalTensor& bias, const OptionalTensor& residual, double x_scale,
                      int64_t x_zero_point, int64_t x_max, double residual_scale, int64_t residual_zero_point,
                      bool float_output, double out_scale, int64_t out_zero_point, int64_t out_min,
                      int64_t out_max) {
  check_bytes(kLinearName, "x", x);
  const std::vector<int64_t> sizes = linear_result_sizes(x, weight);
  if (residual) check_residual(kLinearName, *residual, sizes);
  const int64_t n = weight.size(0), k = weight.size(1);
  const int64_t m = c10::multiply_integers(sizes.begin(), sizes.end() - 1);
  Product product = prepare_product(
      product_spec(kLinearName, linear_shape(m, n, k), weight, weight_scale, bias, residual.has_value(),
                   {x_scale, x_zero_point, x_max, residual_scale, residual_zero_point, float_output,
                    out_scale, out_zero_point, out_min, out_max}));
  const at::Tensor out = at::empty(sizes, x.options().dtype(result_dtype(float_output)));
  run_product(product, x.contiguous(), residual ? residual->contiguous() : at::Tensor(), out);
  return out;
}

at::Tensor linear_meta(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& weight_scale,
                       const OptionalTensor& bias, const OptionalTensor& residual, double x_scale,
                       int64_t x_zero_point, int64_t x_max, double residual_scale,
                       int64_t residual_zero_point, bool float_output, double out_scale,
                       int64_t out_zero_point, int64_t out_min, int64_t out_max) {
  check_bytes(kLinearName, "x", x);
  const std::vector<int64_t> sizes = linear_result_sizes(x, weight);
  if (residual) check_residual(kLinearName, *residual, sizes);
  check_product(product_spec(
      kLinearName,
      linear_shape(c10::multiply_integers(sizes.begin(), sizes.end() - 1), weight.size(0), weight.size(1)),
      weight, weight_scale, bias, residual.has_value(),
      {x_scale, x_zero_point, x_max, residual_scale, residual_zero_point, float_output, out_scale,
       out_zero_point, out_min, out_max}));
  return at::empty(sizes, x.options().dtype(result_dtype(float_output)));
}

TORCH_LIBRARY_FRAGMENT(halftone, m) {
  m.def(
      "int8_conv(Tensor x, Tensor weight, Tensor weight_scale, Tensor? bias, Tensor? residual, *, int[] "
      "stride, "
      "int[] padding, int[] dilation, bool transposed, int[] output_padding, int groups, float x_scale, "
      "int x_zero_point, int x_max, float residual_scale=1.0, int residual_zero_point=0, "
      "bool float_output=False, float out_scale=1.0, int out_zero_point=0, int out_min=0, int out_max=255) "
      "-> Tensor");
  m.def(
      "int8_static_linear(Tensor x, Tensor weight, Tensor weight_scale, Tensor? bias, Tensor? residual, *, "
      "float x_scale, int x_zero_point, int x_max, float residual_scale=1.0, int residual_zero_point=0, "
      "bool float_output=False, float out_scale=1.0, int out_zero_point=0, int out_min=0, int out_max=255) "
      "-> Tensor");
}
TORCH_LIBRARY_IMPL(halftone, CPU, m) {
  m.impl("int8_conv", conv_cpu);
  m.impl("int8_static_linear", linear_cpu);
}
TORCH_LIBRARY_IMPL(halftone, Meta, m) {
  m.impl("int8_conv", conv_meta);
  m.impl("int8_static_linear", linear_meta);
}

}  // namespace

void link_product_operators() {}

}  // namespace halftone::static_int8
