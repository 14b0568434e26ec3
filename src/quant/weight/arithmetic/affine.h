// Floats to integers of 2 to 8 bits with a scale (and a zero point) for each group of neighbouring inputs;
// the integers and scales are those of torchao 0.18, bit for bit.
//
//   symmetric:   scale      = max(max|w| / ((high - low) / 2), smallest_scale)
//                q          = clamp(rint(w · (1/scale)))
//   with zeros:  lo         = min(0, min w),  hi = max(0, max w)
//                scale      = max((hi - lo) / (high - low), smallest_scale)
//                zero_point = clamp(low - rint(lo / scale))
//                q          = clamp(rint(w · (1/scale)) + zero_point)
//
// rint rounds to nearest even, clamp means [low, high]. Each result is rounded to scale_type (all that makes
// the scale and the zero point) or math_type (1/scale and the product), because PyTorch computes them in
// tensors of the weight's own type. Bound in float32, symmetric: |w - q·scale| <= scale / 2 except where the
// largest |w| is clipped, by at most scale / 2 more.
//
// With `search`, that scale s is only the first candidate. The others are s times a factor (some clip the
// largest weights, to gain finer steps for the rest), with every zero point between keeping the lower and
// keeping the upper end; and for each, the scale that fits its integers best (least squares). The one with
// the least sum of squared errors wins, the earlier one of equals: never worse than s, group by group.
#pragma once

#include <ATen/core/Tensor.h>

namespace halftone {

struct AffineRule {
  int low = -128;
  int high = 127;
  bool symmetric = true;
  bool search = false;       ///< scales with the least squared error, see below
  float smallest_scale = 0;  ///< > 0: what a group of zeros gets
  c10::ScalarType scale_type = c10::ScalarType::Float;
  c10::ScalarType math_type = c10::ScalarType::Float;
};

struct AffineParts {
  at::Tensor q;           ///< int8 [n, k]
  at::Tensor scale;       ///< float32 [n, groups]
  at::Tensor zero_point;  ///< int8 [n, groups]; undefined if symmetric
};

/// The rule of int8wo and int8dq: scales of at least 2^-23, and only they are rounded to the weight's type.
AffineRule int8_rule(int weight_bits, c10::ScalarType dtype);
/// The rule of int4wo and IntxWeightOnlyConfig: everything in the weight's type.
AffineRule intx_rule(int bits, bool symmetric, c10::ScalarType dtype);

/// weight: float32 [n, k], contiguous, finite. The last group is shorter if `group` does not divide k; k =
/// 0 is one group of zeros.
AffineParts quantize_affine(const at::Tensor& weight, int64_t group, const AffineRule& rule);

/// Groups of a row; group 0: the whole row.
inline int64_t affine_groups(int64_t k, int64_t group) {
  return group == 0 || k == 0 ? 1 : (k - 1) / group + 1;
}

/// float32 [n, k] from q [n, k], scale [n, groups] (or [n]) and zero_point or an undefined tensor; also on
/// meta tensors. group 0: one group.
at::Tensor dequantize_affine(const at::Tensor& q, const at::Tensor& scale, const at::Tensor& zero_point,
                             int64_t group = 0);

}  // namespace halftone
