// Decompositions of the gradients of simple activations.
#include <ATen/TensorOperators.h>
#include <ATen/ops/_conj_physical.h>
#include <ATen/ops/rsub.h>
#include <ATen/ops/where.h>

#include <cmath>
#include <numbers>
#include <string_view>

#include "autograd/decompositions/boxed.h"
#include "autograd/decompositions/tables.h"
#include "base/errors.h"

namespace halftone {
namespace {

using at::Scalar;
using at::Tensor;

/// Gradients go back through the conjugate of a derivative.
Tensor conjugate(const Tensor& derivative) {
  return derivative.is_complex() ? at::_conj_physical(derivative) : derivative;
}

/// x Φ(x) has the derivative Φ(x) + x φ(x), Φ the normal distribution and φ its density.
Tensor exact_gelu_backward(const Tensor& grad, const Tensor& x) {
  const double density_at_0 = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  const Tensor distribution = x.mul(1 / std::numbers::sqrt2).erf().add(1).mul(0.5);
  const Tensor density = (x * x).mul(-0.5).exp().mul(density_at_0);
  return grad * (distribution + x * density);
}

/// x/2 (1 + tanh(u)) with u = √(2/π) (x + 0.044715 x³).
Tensor gelu_tanh_backward(const Tensor& grad, const Tensor& x) {
  const double factor = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  const double cubic = 0.044715;
  const Tensor square = x * x;
  const Tensor tanh = (x + (square * x).mul(cubic)).mul(factor).tanh();
  const Tensor tanh_slope = at::rsub(tanh * tanh, 1);
  const Tensor inner_slope = square.mul(3 * cubic).add(1).mul(factor);
  return grad * (tanh.add(1).mul(0.5) + x.mul(0.5) * tanh_slope * inner_slope);
}

Tensor either_gelu_backward(const Tensor& grad, const Tensor& x, std::string_view approximate) {
  if (approximate == "none") return exact_gelu_backward(grad, x);
  if (approximate == "tanh") return gelu_tanh_backward(grad, x);
  fail(ErrorCode::kInvalidArgument, "gelu_backward: approximate is \"{}\", not none or tanh", approximate);
}

/// `x` is elu's result where `is_result`.
Tensor elu_backward(const Tensor& grad, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale,
                    bool is_result, const Tensor& x) {
  const double below = alpha.toDouble() * scale.toDouble();
  const Tensor is_below = x.le(0);
  const Tensor inner = grad.mul(input_scale);
  const Tensor negative = is_result ? inner * x.add(below) : inner.mul(below) * x.mul(input_scale).exp();
  return at::where(is_below, negative, grad.mul(scale));
}

Tensor hardsigmoid_backward(const Tensor& grad, const Tensor& x) {
  const float slope = 1.0F / 6;  // ATen's kernel rounds it to float for double, too
  return at::where(x.gt(-3) & x.lt(3), grad.mul(slope), number_like(grad, 0));
}

Tensor hardswish_backward(const Tensor& grad, const Tensor& x) {
  const Tensor right = at::where(x.lt(3), grad * x.div(3).add(0.5), grad);
  return at::where(x.le(-3), number_like(grad, 0), right);
}

Tensor hardtanh_backward(const Tensor& grad, const Tensor& x, const Scalar& low, const Scalar& high) {
  return at::where(x.le(low) | x.ge(high), number_like(grad, 0), grad);
}

/// The slope is positive where `x` is the result, so that its sign says the same.
Tensor leaky_relu_backward(const Tensor& grad, const Tensor& x, const Scalar& negative_slope,
                           bool /*self_is_result*/) {
  return at::where(x.gt(0), grad, grad.mul(negative_slope));
}

Tensor silu_backward(const Tensor& grad, const Tensor& x) {
  const Tensor sigmoid = x.sigmoid();
  return grad * sigmoid * (x * at::rsub(sigmoid, 1)).add(1);
}

Tensor sigmoid_backward(const Tensor& grad, const Tensor& y) {
  return grad * conjugate(y * at::rsub(y, 1));
}

Tensor tanh_backward(const Tensor& grad, const Tensor& y) {
  return grad * conjugate(at::rsub(y * y, 1));
}

}  // namespace

void add_basic_activation_backwards(DecompositionTable& table) {
  table.merge(DecompositionTable{
      {"aten::elu_backward", in_op_math(elu_backward)},
      {"aten::gelu_backward", in_op_math(either_gelu_backward)},
      {"aten::hardsigmoid_backward", in_op_math(hardsigmoid_backward)},
      {"aten::hardswish_backward", in_op_math(hardswish_backward)},
      {"aten::hardtanh_backward", in_op_math(hardtanh_backward)},
      {"aten::leaky_relu_backward", in_op_math(leaky_relu_backward)},
      {"aten::sigmoid_backward", in_op_math(sigmoid_backward)},
      {"aten::silu_backward", in_op_math(silu_backward)},
      {"aten::tanh_backward", in_op_math(tanh_backward)},
      // A choice needs no other type.
      {"aten::threshold_backward", boxed([](const Tensor& grad, const Tensor& x, const Scalar& threshold) {
         return at::where(x.le(threshold), number_like(grad, 0), grad);
       })},
  });
}

}  // namespace halftone
