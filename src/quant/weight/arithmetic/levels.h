// Weights that were 4-bit before they became floats, such as those of a GGUF file in Q4_0, Q4_1 or Q4_K: within each group
// they have at most 16 values, evenly spaced. Those are found again, so that quantizing changes nothing:
//
//   w = scale · (q - zero_point)   with q in [-8, 7], up to 2^-20 of the group's largest |w|
#pragma once

#include <optional>

#include "quant/weight/arithmetic/affine.h"

namespace halftone {

/// weight: float32 [n, k], contiguous, finite. Nothing if a group has other values, or `group` does not divide k. Every value is
/// compared with what it becomes, so a result is right whatever the weight is. The zero points are float32.
std::optional<AffineParts> try_levels(const at::Tensor& weight, int64_t group);

}  // namespace halftone
