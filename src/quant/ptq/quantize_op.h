// The operators of reference graphs as functions, through the dispatcher. Formulas: halftone/ptq/ptq.h.
#pragma once

#include <ATen/core/Tensor.h>

namespace halftone::ops {

/// kInvalidArgument unless x is float32, dtype uint8 or int8, and zero point and range fit it.
at::Tensor quantize_per_tensor(const at::Tensor& x, double scale, int64_t zero_point, int64_t quant_min,
                               int64_t quant_max, c10::ScalarType dtype);
at::Tensor dequantize_per_tensor(const at::Tensor& q, double scale, int64_t zero_point);
/// scales float32 and zero_points int32 or float32, one for each element of `axis`.
at::Tensor dequantize_per_channel(const at::Tensor& q, const at::Tensor& scales,
                                  const at::Tensor& zero_points, int64_t axis);
/// As at::quantize_per_tensor_dynamic and dequantize.
at::Tensor quantize_dequantize_dynamic(const at::Tensor& x, c10::ScalarType dtype, bool reduce_range);

}  // namespace halftone::ops
