// What training needs to know of a config: how it rounds weights and activations.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

#include "halftone/quant/config.h"
#include "halftone/quant/weight_format.h"
#include "quant/weight/arithmetic/affine.h"

namespace halftone {

/// What a scheme does to activations in each call.
struct ActivationRule {
  bool quantized = false;
  bool symmetric = false;
  int64_t group = 0;  ///< 0: whole rows
};

struct AffineScheme {
  QuantConfig config;
  AffineRule rule;
  int64_t group = 0;    ///< 0: the whole row
  int packed_bits = 0;  ///< of the part "weight"; 0: plain int8, and one scale a row
  ActivationRule activations;

  /// float32 [n, k] with these scales, in the parts of the config's format. `scale` and `zero_point` (or an
  /// undefined tensor) are [n, groups].
  Parts parts(const at::Tensor& weight, const at::Tensor& scale, const at::Tensor& zero_point) const;
};

/// kUnsupported, naming `layer`, for a config whose weights are no integers with scales from their range.
AffineScheme affine_scheme(const QuantConfig& config, c10::ScalarType dtype, std::string_view layer);

}  // namespace halftone
