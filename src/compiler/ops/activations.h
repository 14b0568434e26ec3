// The activations of halftone::fused_linear and halftone::conv, by the names that graphs and files hold.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string_view>

#include "kernels/common/epilogue.h"
#include "kernels/conv/conv_activation.h"

namespace halftone::ops {

struct NamedActivation {
  std::string_view name;
  at::Tensor (*apply)(const at::Tensor& y, double lo, double hi);  ///< lo and hi: of "clamp" only
  kernels::ConvActivation conv;
  std::optional<kernels::Activation> linear;  ///< nothing: fused_linear does not have it
};

// kInvalidArgument, naming the operator, where it has none of that name.
const NamedActivation& conv_activation(std::string_view name);
const NamedActivation& linear_activation(std::string_view name);  ///< its `linear` is there

}  // namespace halftone::ops
