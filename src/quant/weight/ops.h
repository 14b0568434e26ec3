// The halftone::* operators as functions, through the dispatcher. Each is defined with its schema, its CPU,
// meta and autograd kernels in one file of this folder. Formulas and layouts of the parts stand at the
// functions.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace halftone::ops {

/// y = x · (weight · scale)ᵀ + bias; weight int8 [n, k], scale float32 [n]. Kernel: int8_weight_only_linear.
at::Tensor int8_weight_only_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& scale,
                                   const std::optional<at::Tensor>& bias);

/// The same with x quantized row by row to 8 bits, asymmetric or not (quantize_rows.h), and exact sums.
/// weight_bits 7: weights in
/// [-64, 64]. Kernel: int8_linear.
at::Tensor int8_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& scale,
                       const std::optional<at::Tensor>& bias, int64_t weight_bits,
                       bool symmetric_activations);

/// y = x · ((weight - zero_point) · scale)ᵀ + bias; weight uint8 [n, ceil(k / 2)] (bits.h), scale float32 and
/// zero_point int8 [n, ceil(k / group_size)]: the last group may be shorter. in_features: k; 0 if it is
/// even. Kernel: int4_weight_only_linear, or int4_dynamic_linear with quantize_activations.
at::Tensor int4_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& scale,
                       const std::optional<at::Tensor>& zero_point, const std::optional<at::Tensor>& bias,
                       int64_t group_size, bool quantize_activations, int64_t in_features = 0);

/// y = x · (weight · scale)ᵀ + bias; weight Float8_e4m3fn [n, k], scale float32 [n], or [1] where per_tensor.
/// With quantize_activations x is rounded to float8 too, row by row, or with one scale for the call where
/// per_tensor. Kernel: fp8_linear.
at::Tensor fp8_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& scale,
                      const std::optional<at::Tensor>& bias, bool quantize_activations, bool per_tensor);

/// y = x · weightᵀ + bias; weight bfloat16 [n, k], multiplied and summed in float32. Kernel: bf16_linear.
at::Tensor bf16_linear(const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias);

/// Rows of a quantized table by index (int64 or int32, any sizes): [..., k] in `dtype`, float32 where there
/// is none. Not differentiable: the tables are constants. weight and scale as in int8_weight_only_linear.
/// Kernel: embedding_rows.
at::Tensor int8_embedding(const at::Tensor& indices, const at::Tensor& weight, const at::Tensor& scale,
                          std::optional<c10::ScalarType> dtype);
/// The same; weight, scale and zero_point as in int4_linear.
at::Tensor int4_embedding(const at::Tensor& indices, const at::Tensor& weight, const at::Tensor& scale,
                          const std::optional<at::Tensor>& zero_point, int64_t group_size,
                          std::optional<c10::ScalarType> dtype, int64_t in_features = 0);

/// The inputs of an int4 weight uint8 [n, ceil(k / 2)]. kInvalidArgument, naming the operator, if
/// in_features is neither 0 nor such a k.
c10::SymInt int4_inputs(const char* name, const at::Tensor& weight, int64_t in_features);
/// The same; weight bfloat16 [rows, k], widened exactly, read by ATen.
at::Tensor bf16_embedding(const at::Tensor& indices, const at::Tensor& weight,
                          std::optional<c10::ScalarType> dtype);

/// y = x · ((weight - zero_point) · scale)ᵀ + bias; weight uint8 [n, ceil(k · bits / 8)] (bits.h), scale
/// float32 and zero_point int8 [n, groups], group_size 0: one group. Kernel: the nearest (intx_op.cpp).
at::Tensor intx_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& scale,
                       const std::optional<at::Tensor>& zero_point, const std::optional<at::Tensor>& bias,
                       int64_t bits, int64_t in_features, int64_t group_size);

/// A format of the user's own: `config` is its JSON, `names` and `parts` its parts, `sizes` [n, k].
at::Tensor custom_linear(const at::Tensor& x, at::TensorList parts, const std::optional<at::Tensor>& bias,
                         std::string_view config, const std::vector<std::string>& names,
                         at::IntArrayRef sizes);

}  // namespace halftone::ops
