// halftone::fused_linear
#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>

#include "base/errors.h"
#include "compiler/ops/formats.h"
#include "compiler/ops/kernels.h"

namespace halftone::ops {
namespace {

std::string_view text(c10::string_view view) {
  return {view.data(), view.size()};
}

at::Tensor activate(const at::Tensor& y, std::string_view activation) {
  if (activation == "none") return y;
  if (activation == "relu") return at::relu(y);
  if (activation == "gelu") return at::gelu(y);
  if (activation == "gelu_tanh") return at::gelu(y, "tanh");
  if (activation == "silu") return at::silu(y);
  fail(ErrorCode::kInvalidArgument, "halftone::fused_linear: unknown activation \"{}\"", activation);
}

const FusedFormat& checked_format(std::string_view name, size_t parts, size_t attributes) {
  const FusedFormat* format = try_fused_format(name);
  if (format == nullptr)
    fail(ErrorCode::kInvalidArgument, "halftone::fused_linear: unknown format \"{}\"", name);
  if (parts < format->required_parts || parts > format->parts.size() ||
      attributes != format->attributes.size())
    fail(ErrorCode::kInvalidArgument,
         "halftone::fused_linear: format \"{}\" takes {} to {} parts and {} attributes, not {} and {}", name,
         format->required_parts, format->parts.size(), format->attributes.size(), parts, attributes);
  return *format;
}

// The plain operator, its arguments found by name.
at::Tensor plain_linear(const FusedFormat& format, const at::Tensor& x, at::TensorList weight,
                        const OptionalTensor& bias, at::IntArrayRef attributes) {
  const auto op = c10::Dispatcher::singleton().findSchema({std::string(format.target), ""});
  if (!op) fail(ErrorCode::kUnsupported, "halftone::fused_linear: {} is not registered", format.target);
  torch::jit::Stack stack;
  for (const c10::Argument& argument : op->schema().arguments()) {
    const std::string& name = argument.name();
    const auto part = std::find(format.parts.begin(), format.parts.end(), name);
    const auto attribute = std::find(format.attributes.begin(), format.attributes.end(), name);
    if (name == "x" || name == "input") {
      stack.emplace_back(x);
    } else if (name == "bias") {
      stack.emplace_back(bias);
    } else if (part != format.parts.end()) {
      const size_t index = static_cast<size_t>(part - format.parts.begin());
      stack.push_back(index < weight.size() ? c10::IValue(weight[index]) : c10::IValue());
    } else if (attribute != format.attributes.end()) {
      const int64_t value = attributes[static_cast<size_t>(attribute - format.attributes.begin())];
      const bool flag = argument.type()->kind() == c10::TypeKind::BoolType;
      stack.push_back(flag ? c10::IValue(value != 0) : c10::IValue(value));
    } else {
      stack.push_back(argument.default_value().value_or(c10::IValue()));
    }
  }
  op->callBoxed(stack);
  return stack.at(0).toTensor();
}

// Rows that are quantized already: the integer sums are exact in double, then the roundings of
// kernels/int8_linear.
at::Tensor int8_rows_linear(const QuantizedRows& rows, at::TensorList weight, const OptionalTensor& bias) {
  std::vector<int64_t> per_row = rows.q.sizes().vec();
  per_row.back() = 1;
  const at::Tensor centred = rows.q.to(at::kDouble) - rows.zero_point.view(per_row);
  const at::Tensor sums = at::matmul(centred, weight[0].to(at::kDouble).t()).to(at::kFloat);
  const at::Tensor y = sums * (rows.scale.view(per_row) * weight[1]);
  return bias ? y + *bias : y;
}

}  // namespace

FusedLinearResult fused_linear_cpu(const at::Tensor& x, const OptionalTensor& x_scale,
                                   const OptionalTensor& x_zero_point, at::TensorList weight,
                                   const OptionalTensor& bias, const OptionalTensor& residual,
                                   c10::string_view format, at::IntArrayRef attributes,
                                   c10::string_view activation, bool symmetric) {
  const FusedFormat& how = checked_format(text(format), weight.size(), attributes.size());
  const bool quantized = x_scale.has_value() && x_zero_point.has_value();
  if (quantized && how.name != "int8")
    fail(ErrorCode::kInvalidArgument,
         "halftone::fused_linear: quantized rows need format \"int8\", not \"{}\"", how.name);
  at::Tensor y = quantized ? int8_rows_linear({x, *x_scale, *x_zero_point}, weight, bias)
                           : plain_linear(how, x, weight, bias, attributes);
  y = activate(y, text(activation));
  if (residual) y = y + *residual;
  y = y.contiguous();
  auto [q, scale, zero_point] = quantize_rows_cpu(y, symmetric);
  return {y, q, scale, zero_point};
}

FusedLinearResult fused_linear_meta(const at::Tensor& x, const OptionalTensor& x_scale,
                                    const OptionalTensor& x_zero_point, at::TensorList weight,
                                    const OptionalTensor& bias, const OptionalTensor& residual,
                                    c10::string_view format, at::IntArrayRef attributes,
                                    c10::string_view activation, bool symmetric) {
  checked_format(text(format), weight.size(), attributes.size());
  c10::SymDimVector sizes(x.sym_sizes().begin(), x.sym_sizes().end());
  sizes.back() = weight[0].sym_size(0);
  const at::Tensor y = at::empty_symint(sizes, x.options().dtype(x_scale ? at::kFloat : x.scalar_type()));
  auto [q, scale, zero_point] = quantize_rows_meta(y, symmetric);
  return {y, q, scale, zero_point};
}

}  // namespace halftone::ops
