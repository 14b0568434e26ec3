// The CPU and meta kernels behind the operators of ops.h, as the dispatcher wants them.
#pragma once

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>

#include "compiler/ops/ops.h"

namespace halftone::ops {

using QuantizeRowsResult = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

QuantizeRowsResult quantize_rows_cpu(const at::Tensor& x, bool symmetric);
QuantizeRowsResult quantize_rows_meta(const at::Tensor& x, bool symmetric);

NormResult norm_cpu(const at::Tensor& x, const OptionalTensor& residual, const OptionalTensor& gamma,
                    const OptionalTensor& beta, c10::string_view kind, double eps, bool symmetric);
NormResult norm_meta(const at::Tensor& x, const OptionalTensor& residual, const OptionalTensor& gamma,
                     const OptionalTensor& beta, c10::string_view kind, double eps, bool symmetric);

at::Tensor attention_cpu(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                         const OptionalTensor& mask, bool causal, double scale);
at::Tensor attention_meta(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          const OptionalTensor& mask, bool causal, double scale);

FusedLinearResult fused_linear_cpu(const at::Tensor& x, const OptionalTensor& x_scale,
                                   const OptionalTensor& x_zero_point, at::TensorList weight,
                                   const OptionalTensor& bias, const OptionalTensor& residual,
                                   c10::string_view format, at::IntArrayRef attributes,
                                   c10::string_view activation, bool symmetric);
FusedLinearResult fused_linear_meta(const at::Tensor& x, const OptionalTensor& x_scale,
                                    const OptionalTensor& x_zero_point, at::TensorList weight,
                                    const OptionalTensor& bias, const OptionalTensor& residual,
                                    c10::string_view format, at::IntArrayRef attributes,
                                    c10::string_view activation, bool symmetric);

at::Tensor conv_cpu(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias,
                    const OptionalTensor& residual, at::IntArrayRef stride, at::IntArrayRef padding,
                    at::IntArrayRef dilation, bool transposed, at::IntArrayRef output_padding, int64_t groups,
                    c10::string_view activation, double lo, double hi);
at::Tensor conv_meta(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias,
                     const OptionalTensor& residual, at::IntArrayRef stride, at::IntArrayRef padding,
                     at::IntArrayRef dilation, bool transposed, at::IntArrayRef output_padding,
                     int64_t groups, c10::string_view activation, double lo, double hi);

}  // namespace halftone::ops
