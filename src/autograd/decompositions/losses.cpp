#include "autograd/decompositions/losses.h"

#include <ATen/TensorOperators.h>

#include "autograd/decompositions/boxed.h"
#include "autograd/decompositions/tables.h"

namespace halftone {

using at::Tensor;

Tensor reduce_loss(const Tensor& losses, int64_t reduction) {
  if (reduction == at::Reduction::Mean) return at::mean(losses);
  return reduction == at::Reduction::Sum ? at::sum(losses) : losses;
}

double mean_share(const Tensor& x, int64_t reduction) {
  return reduction == at::Reduction::Mean ? 1.0 / static_cast<double>(x.numel()) : 1;
}

namespace {

Tensor mse_backward(const Tensor& grad, const Tensor& x, const Tensor& target, int64_t reduction) {
  return (x - target).mul(2 * mean_share(x, reduction)) * grad;
}

/// d²/2β near zero, |d| - β/2 further away.
Tensor smooth_l1(const Tensor& x, const Tensor& target, int64_t reduction, double beta) {
  const Tensor distance = (x - target).abs();
  const Tensor near = distance.pow(2).mul(0.5).div(beta);
  return reduce_loss(at::where(distance.lt(beta), near, distance.sub(0.5 * beta)), reduction);
}

Tensor smooth_l1_backward(const Tensor& grad, const Tensor& x, const Tensor& target, int64_t reduction,
                          double beta) {
  const Tensor difference = x - target;
  const Tensor share = grad.mul(mean_share(x, reduction));
  // With β = 0 the quotient is NaN, and not taken.
  const Tensor right = at::where(difference.ge(beta), share, (share * difference).div(beta));
  return at::where(difference.le(-beta), share.neg(), right);
}

/// d²/2 near zero, δ(|d| - δ/2) further away.
Tensor huber(const Tensor& x, const Tensor& target, int64_t reduction, double delta) {
  const Tensor distance = (x - target).abs();
  const Tensor far = distance.sub(0.5 * delta).mul(delta);
  return reduce_loss(at::where(distance.lt(delta), distance.mul(0.5) * distance, far), reduction);
}

Tensor huber_backward(const Tensor& grad, const Tensor& x, const Tensor& target, int64_t reduction,
                      double delta) {
  return (x - target).clamp(-delta, delta).mul(mean_share(x, reduction)) * grad;
}

/// log(1 + exp(-yx)), y being -1 or 1.
Tensor soft_margin(const Tensor& x, const Tensor& target, int64_t reduction) {
  return reduce_loss((x.neg() * target).exp().log1p(), reduction);
}

Tensor soft_margin_backward(const Tensor& grad, const Tensor& x, const Tensor& target, int64_t reduction) {
  const Tensor slope = target * grad * (target * x).sigmoid().sub(1);
  return reduction == at::Reduction::Mean ? slope.div(static_cast<double>(x.numel())) : slope;
}

}  // namespace

void add_losses(DecompositionTable& table) {
  table.merge(DecompositionTable{
      {"aten::huber_loss", in_op_math(huber)},
      {"aten::huber_loss_backward", in_op_math(huber_backward)},
      {"aten::mse_loss", in_op_math([](const Tensor& x, const Tensor& target, int64_t reduction) {
         return reduce_loss((x - target).pow(2), reduction);
       })},
      {"aten::mse_loss_backward", in_op_math(mse_backward)},
      {"aten::smooth_l1_loss", in_op_math(smooth_l1)},
      {"aten::smooth_l1_loss_backward", in_op_math(smooth_l1_backward)},
      {"aten::soft_margin_loss", in_op_math(soft_margin)},
      {"aten::soft_margin_loss_backward", in_op_math(soft_margin_backward)},
  });
}

}  // namespace halftone
