// halftone::fused_linear
#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>

#include "base/errors.h"
#include "compiler/ops/activations.h"
#include "compiler/ops/formats.h"
#include "compiler/ops/kernels.h"

namespace halftone::ops {
namespace {

std::string_view text(c10::string_view view) {
  return {view.data(), view.size()};
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

/// Whether x is rows that are quantized already; kInvalidArgument if the rest does not go with it.
bool check_rows(const at::Tensor& x, const OptionalTensor& x_scale, const OptionalTensor& x_zero_point,
                const FusedFormat& format, at::IntArrayRef attributes) {
  if (x.dim() < 1) fail(ErrorCode::kInvalidArgument, "halftone::fused_linear: x must have a dimension");
  if (x_scale.has_value() != x_zero_point.has_value())
    fail(ErrorCode::kInvalidArgument, "halftone::fused_linear: a scale needs a zero point, and it a scale");
  if (!x_scale) return false;
  if (!format.takes_quantized_rows)
    fail(ErrorCode::kInvalidArgument,
         "halftone::fused_linear: quantized rows need format \"int8\", not \"{}\"", format.name);
  c10::SymInt rows = 1;
  for (int64_t i = 0; i + 1 < x.dim(); ++i) rows *= x.sym_size(i);
  const auto is_for_rows = [&](const at::Tensor& part, c10::ScalarType type) {
    return part.scalar_type() == type && part.dim() == 1 && part.sym_size(0) == rows;
  };
  if (x.scalar_type() != (attributes.at(1) != 0 ? at::kChar : at::kByte) ||
      !is_for_rows(*x_scale, at::kFloat) || !is_for_rows(*x_zero_point, at::kInt))
    fail(
        ErrorCode::kInvalidArgument,
        "halftone::fused_linear: quantized rows are bytes with a float32 scale and an int32 zero point each");
  return true;
}

// Rows that are quantized already: the integer sums are exact in double, then the roundings of
// kernels/int8_linear.
at::Tensor int8_rows_linear(const QuantizedRows& rows, at::TensorList weight, const OptionalTensor& bias) {
  std::vector<int64_t> per_row = rows.q.sizes().vec();
  per_row.back() = 1;
  if (weight[0].dim() != 2 || weight[0].size(1) != rows.q.size(-1) || weight[1].dim() != 1)
    fail(ErrorCode::kInvalidArgument, "halftone::fused_linear: the weight does not fit the quantized rows");
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
  const bool quantized = check_rows(x, x_scale, x_zero_point, how, attributes);
  at::Tensor y = quantized ? int8_rows_linear({x, *x_scale, *x_zero_point}, weight, bias)
                           : plain_linear(how, x, weight, bias, attributes);
  y = linear_activation(text(activation)).apply(y, 0, 0);
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
  const FusedFormat& how = checked_format(text(format), weight.size(), attributes.size());
  linear_activation(text(activation));  // refuses a name that is unknown
  const bool quantized = check_rows(x, x_scale, x_zero_point, how, attributes);
  const at::Tensor rows = quantized ? at::empty_symint(x.sym_sizes(), x.options().dtype(at::kFloat)) : x;
  at::Tensor y = plain_linear(how, rows, weight, bias, attributes);
  if (residual) y = y + *residual;
  auto [q, scale, zero_point] = quantize_rows_meta(y, symmetric);
  return {y, q, scale, zero_point};
}

}  // namespace halftone::ops
