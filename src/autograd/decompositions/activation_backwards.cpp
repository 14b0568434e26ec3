// Decompositions of the gradients of activations.
#include <ATen/TensorOperators.h>

#include <limits>

#include "autograd/decompositions/boxed.h"
#include "autograd/decompositions/logit_range.h"
#include "autograd/decompositions/tables.h"

namespace halftone {
namespace {

using at::Scalar;
using at::Tensor;

Tensor softplus_backward(const Tensor& grad, const Tensor& x, const Scalar& beta, const Scalar& threshold) {
  const Tensor inner = x.mul(beta);
  const Tensor power = inner.exp();
  return at::where(inner.gt(threshold), grad, grad * power / power.add(1));
}

/// x tanh(softplus(x))
Tensor mish_backward(const Tensor& grad, const Tensor& x) {
  const Tensor tanh = at::softplus(x).tanh();
  return grad * (tanh + x * x.sigmoid() * at::rsub(tanh * tanh, 1));
}

/// a σ(b), a and b being the halves of x.
Tensor glu_backward(const Tensor& grad, const Tensor& x, int64_t dim) {
  const int64_t half = x.size(dim) / 2;
  const Tensor gate = at::slice(x, dim, half, 2 * half).sigmoid();
  const Tensor gate_slope = at::rsub(gate, 1) * gate;
  return at::cat({gate * grad, gate_slope * at::slice(x, dim, 0, half) * grad}, dim);
}

Tensor logit_backward(const Tensor& grad, const Tensor& x, std::optional<double> eps) {
  const LogitRange range(x.scalar_type(), eps.value_or(0));
  const Tensor inside = at::logical_and(x.ge(range.low), x.le(range.high));
  const double outside = eps ? 0 : std::numeric_limits<double>::quiet_NaN();
  return at::where(inside, grad / (x * at::rsub(x, 1)), number_like(x, outside));
}

/// `decay` is exp(-|x|), or empty on other devices.
Tensor log_sigmoid_backward(const Tensor& grad, const Tensor& x, const Tensor& decay) {
  const Tensor power = decay.numel() > 0 ? decay : x.abs().neg().exp();
  const Tensor share = power / power.add(1);
  return grad * at::where(x.lt(0), at::rsub(share, 1), share);
}

std::tuple<Tensor, Tensor> prelu_backward(const Tensor& grad, const Tensor& x, const Tensor& weight) {
  const Tensor above = x.gt(0);
  const Tensor product = x * grad;
  return {at::where(above, grad, weight * grad), at::where(above, number_like(product, 0), product)};
}

/// Both shrinks let the same gradients through.
Tensor shrink_backward(const Tensor& grad, const Tensor& x, const Scalar& lambda) {
  return at::where(x.abs().le(lambda), number_like(grad, 0), grad);
}

Tensor rrelu_backward(const Tensor& grad, const Tensor& x, const Tensor& noise, const Scalar& lower,
                      const Scalar& upper, bool training, bool /*self_is_result*/) {
  if (training && upper.toDouble() - lower.toDouble() > 1e-6) return grad * noise;
  return at::where(x.gt(0), grad, grad.mul((lower.toDouble() + upper.toDouble()) / 2));
}

}  // namespace

void add_activation_backwards(DecompositionTable& table) {
  table.merge(DecompositionTable{
      {"aten::glu_backward", in_op_math(glu_backward)},
      {"aten::hardshrink_backward", boxed(shrink_backward)},
      {"aten::log_sigmoid_backward", in_op_math(log_sigmoid_backward)},
      {"aten::logit_backward", in_op_math(logit_backward)},
      {"aten::mish_backward", in_op_math(mish_backward)},
      {"aten::_prelu_kernel_backward", boxed(prelu_backward)},
      {"aten::rrelu_with_noise_backward", in_op_math(rrelu_backward)},
      {"aten::softplus_backward", in_op_math(softplus_backward)},
      {"aten::softshrink_backward", boxed(shrink_backward)},
  });
}

}  // namespace halftone
