// Decompositions of binary cross entropy and its gradient.
#include <ATen/TensorOperators.h>

#include "autograd/decompositions/boxed.h"
#include "autograd/decompositions/losses.h"
#include "autograd/decompositions/tables.h"

namespace halftone {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<at::Tensor>;

Tensor weighed(const Tensor& x, const OptionalTensor& weight) {
  return given(weight).defined() ? x * *weight : x;
}

/// -t log(x) - (1 - t) log(1 - x), logarithms being at least -100.
Tensor binary_cross_entropy(const Tensor& x, const Tensor& target, const OptionalTensor& weight,
                            int64_t reduction) {
  const Tensor against = target.sub(1) * x.neg().log1p().clamp(-100);
  return reduce_loss(weighed(against - target * x.log().clamp(-100), weight), reduction);
}

Tensor binary_cross_entropy_backward(const Tensor& grad, const Tensor& x, const Tensor& target,
                                     const OptionalTensor& weight, int64_t reduction) {
  const Tensor slope = grad * (x - target) / (x * at::rsub(x, 1)).clamp(1e-12);
  const Tensor result = weighed(slope, weight);
  return reduction == at::Reduction::Mean ? result.div(static_cast<double>(x.numel())) : result;
}

/// (1 - t) x - (1 + (p - 1) t) log σ(x), p being the weight of what is true.
Tensor cross_entropy_with_logits(const Tensor& x, const Tensor& target, const OptionalTensor& weight,
                                 const OptionalTensor& pos_weight, int64_t reduction) {
  const Tensor against = at::rsub(target, 1) * x;
  const Tensor log_sigmoid = std::get<0>(at::log_sigmoid_forward(x));
  Tensor losses;
  if (given(pos_weight).defined()) {
    losses = against - (pos_weight->sub(1) * target).add(1) * log_sigmoid;
  } else {
    losses = against - log_sigmoid;
  }
  return reduce_loss(weighed(losses, weight), reduction);
}

}  // namespace

void add_cross_entropy(DecompositionTable& table) {
  table.merge(DecompositionTable{
      {"aten::binary_cross_entropy", in_op_math(binary_cross_entropy)},
      {"aten::binary_cross_entropy_backward", in_op_math(binary_cross_entropy_backward)},
      {"aten::binary_cross_entropy_with_logits", boxed(cross_entropy_with_logits)},
  });
}

}  // namespace halftone
