// The arithmetic of affine.h with scales that are given: for training, where they are observed or learned.
//
//   steps = rint(x · (1/scale)) + zero_point,  q = clamp(steps, [low, high]),  y = (q - zero_point) · scale
//
// Each operation is the one of quantize_affine() and dequantize_affine(), so with the scales that they choose
// y is what they restore, bit for bit. The gradients are those of y where rounding counts as the identity:
//
//   dy/dx      1 where steps is in [low, high], else 0
//   dy/dscale  q - zero_point - x/scale there, else q - zero_point; added up over the group
#pragma once

#include <ATen/core/Tensor.h>

#include "quant/weight/arithmetic/affine.h"

namespace halftone {

/// One scale for each group of a matrix [n, k] (affine_groups).
struct AffineScales {
  at::Tensor scale;       ///< float32 [n, groups], contiguous
  at::Tensor zero_point;  ///< int32 [n, groups], contiguous; undefined: zeros
  int64_t group = 0;      ///< 0: the whole row
};

/// The rule's scales for groups whose numbers are in [low, high]; zero counts as seen. Zero points are int8.
AffineParts affine_scales(const at::Tensor& low, const at::Tensor& high, const AffineRule& rule);

/// int8 [n, k]. weight: float32, contiguous.
at::Tensor quantize_with(const at::Tensor& weight, const AffineScales& scales, const AffineRule& rule);

// x, dy: float32 [n, k], contiguous. Only low, high and math_type of the rule count. NaN stays NaN.
at::Tensor fake_quantize_with(const at::Tensor& x, const AffineScales& scales, const AffineRule& rule);
at::Tensor fake_quantize_gradient(const at::Tensor& dy, const at::Tensor& x, const AffineScales& scales,
                                  const AffineRule& rule);
/// float32 [n, groups].
at::Tensor fake_quantize_scale_gradient(const at::Tensor& dy, const at::Tensor& x, const AffineScales& scales,
                                        const AffineRule& rule);

}  // namespace halftone
