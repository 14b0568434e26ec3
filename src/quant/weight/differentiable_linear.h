// Gradients of the linear operators: straight through the rounding of the activations.
//
//   y = x · Wᵀ + bias with the dequantized W:  dx = dy · W,  dbias = Σ dy over all rows.
//
// Where an operator quantizes x too, this is the gradient of the unquantized function at x: the true one is
// zero almost everywhere. The parts of a weight are constants; a request for a gradient of one raises
// (kInvalidArgument), and so do forward-mode derivatives (kUnsupported), which would be dropped silently
// otherwise.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <vector>

namespace halftone {

struct LinearGradient {
  const char* name;               ///< of the operator, for messages
  std::vector<at::Tensor> parts;  ///< undefined ones are allowed
  /// The operator below autograd.
  std::function<at::Tensor(const at::Tensor& x, const std::optional<at::Tensor>& bias)> forward;
  /// float32 [n, k] from the parts; made of ATen operators, so that it runs on meta tensors too.
  std::function<at::Tensor(const std::vector<at::Tensor>& parts)> dequantize;
};

/// What an operator's autograd kernel returns.
at::Tensor differentiable_linear(const at::Tensor& x, const std::optional<at::Tensor>& bias,
                                 LinearGradient gradient);

}  // namespace halftone
