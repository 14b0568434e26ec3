// Floats to float8 (e4m3fn) with a scale for each row or one for all, and back.
//
//   scale = max(max|w| / 448, 2^-126),  q = e4m3fn(w / scale), rounded to nearest even
//
// As in torchao 0.18, within one step: there the scale of a bfloat16 weight is rounded to bfloat16 first, and
// a row of zeros becomes NaN. Bound: |w - q · scale| <= 0.0626 · |w| + 0.00098 · scale.
#pragma once

#include <ATen/core/Tensor.h>

namespace halftone {

struct Float8Parts {
  at::Tensor q;      ///< Float8_e4m3fn, as the source
  at::Tensor scale;  ///< float32 [n], or [1]
};

/// rows: float32 [n, k], contiguous, finite.
Float8Parts quantize_float8(const at::Tensor& rows, bool per_tensor);

/// float32 [n, k]; also on meta tensors.
at::Tensor dequantize_float8(const at::Tensor& q, const at::Tensor& scale);

/// What one scale for all makes of activations: float32 [m, k] there and back. NaN throughout where a number
/// is not finite.
at::Tensor round_to_float8(const at::Tensor& rows);

}  // namespace halftone
