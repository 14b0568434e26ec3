// The fused operators that the compiler's passes write into graphs, as functions through the dispatcher. They
// are real operators, so the interpreter runs every rewritten graph; the executor replaces them by native
// steps, which must agree with the formulas here.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string_view>
#include <tuple>

namespace halftone::ops {

using OptionalTensor = std::optional<at::Tensor>;

/// Rows (the last dimension) as 8-bit integers, by the rule of kernels/quantize_rows. q has x's sizes and is
/// uint8, or int8 where symmetric; scale is float32 [rows], zero_point int32 [rows] (zeros if symmetric),
/// rows = x.numel() / x.size(-1). x: float32.
struct QuantizedRows {
  at::Tensor q, scale, zero_point;
};
QuantizedRows quantize_rows(const at::Tensor& x, bool symmetric);
/// scale · (q - zero_point), row by row.
at::Tensor dequantize_rows(const QuantizedRows& rows);

/// sum = x + residual (x if there is none); y = sum normalised over its last dimension:
///   layer: (sum - mean) / sqrt(variance + eps) · gamma + beta
///   rms:   sum / sqrt(mean of squares + eps) · gamma + beta
/// q, scale, zero_point: the rows of y quantized. → (y, sum, q, scale, zero_point)
using NormResult = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;
NormResult norm(const at::Tensor& x, const OptionalTensor& residual, const OptionalTensor& gamma,
                const OptionalTensor& beta, std::string_view kind, double eps, bool symmetric);

/// softmax(q · kᵀ · scale + mask) · v for q [b, h, m, d], k [b, hkv, n, d], v [b, hkv, n, dv], h a multiple
/// of hkv (head i reads key head i / (h / hkv)). mask: float (added) or bool (true keeps), broadcastable to
/// [b, h, m, n]. causal: query i sees keys 0 … i. A row that sees nothing is what
/// aten::scaled_dot_product_attention makes of it. The result [b, h, m, dv] lies in memory as [b, m, h, dv],
/// so that joining the heads afterwards copies nothing.
at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const OptionalTensor& mask, bool causal, double scale);

/// y = activation(x · Wᵀ + bias) + residual, and the rows of y quantized → (y, q, scale, zero_point).
/// x [..., k] floating point; or, with x_scale and x_zero_point [rows], rows that quantize_rows made (format
/// "int8" only). `format` names a LinearFormat (quant/weight/linear_format.h); `weight` holds its parts in
/// the order of the plain operator's arguments, `attributes` its constants as integers. Both are listed in
/// the format's own file: quant/weight/int4_format.cpp has "int4". activation: "none", "relu", "gelu",
/// "gelu_tanh", "silu".
struct FusedLinear {
  at::Tensor x;
  OptionalTensor x_scale, x_zero_point;
  std::vector<at::Tensor> weight;
  OptionalTensor bias, residual;
  std::string_view format;
  std::vector<int64_t> attributes;
  std::string_view activation;
  bool symmetric = false;
};
using FusedLinearResult = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;
FusedLinearResult fused_linear(const FusedLinear& call);

/// What a convolution does beside its tensors. stride, padding (on both sides), dilation and output_padding
/// have one number for each spatial dimension; padding may have two if nothing is transposed: those in
/// front, then those behind. activation: "none", "relu", "clamp" (to lo … hi), "gelu",
/// "gelu_tanh", "silu", "hardswish", "sigmoid", "hardsigmoid".
struct ConvNumbers {
  at::IntArrayRef stride, padding, dilation;
  bool transposed = false;
  at::IntArrayRef output_padding;
  int64_t groups = 1;
  std::string_view activation = "none";
  double lo = 0, hi = 0;
};

/// y = activation(aten::convolution(x, weight, bias, …) + residual): the residual comes before the
/// activation. x [n, c, …] with one to three spatial dimensions, of any strides. The result lies in memory
/// with its channels last: [n, …, c].
at::Tensor conv(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias,
                const OptionalTensor& residual, const ConvNumbers& how);

}  // namespace halftone::ops

namespace halftone {

/// Registers the operators above in the dispatcher, once. Code that reads or writes a graph with them
/// calls this: a static library would otherwise drop the registration.
void register_fused_operators();

}  // namespace halftone
