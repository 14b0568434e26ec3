// Calls of the activations that only core_decompositions() has.
#include <ATen/ATen.h>

#include "autograd/decompositions/cases/case.h"

namespace halftone {
namespace {

using at::randn;
using at::Tensor;

void add_forwards(CaseList& list, const Tensor& x) {
  list.add("aten::celu", {x});
  list.add("aten::celu", {x, 1.5});
  list.add("aten::gelu", {x, "none"});
  list.add("aten::gelu", {x, "tanh"});
  list.add("aten::hardshrink", {x, 0.5});
  list.add("aten::log_sigmoid_forward", {x});
  list.add("aten::mish", {x});
  list.add("aten::silu", {x});
  list.add("aten::softplus", {x});
  list.add("aten::softplus", {x, 1.7, 2.0});
  list.add("aten::softshrink", {x, 0.5});
  list.add("aten::threshold", {x, 0.5, 2.0});
}

void add_backwards(CaseList& list, const Tensor& x) {
  const Tensor grad = randn(x.sizes(), at::kDouble);
  list.add("aten::hardshrink_backward", {grad, x, 0.5});
  list.add("aten::log_sigmoid_backward", {grad, x, x.abs().neg().exp()});
  list.add("aten::mish_backward", {grad, x});
  list.add("aten::rrelu_with_noise_backward", {grad, x, x.abs(), 0.1, 0.3, false, false});
  list.add("aten::rrelu_with_noise_backward", {grad, x, x.abs(), 0.1, 0.3, true, false});
  list.add("aten::softplus_backward", {grad, x, 1, 20});
  list.add("aten::softplus_backward", {grad, x, 1.7, 2.0});
  list.add("aten::softshrink_backward", {grad, x, 0.5});
}

/// Probabilities. bfloat16 kernels compute in bfloat16 here, which near 1 is not a measure of anything.
void add_logits(CaseList& list) {
  const Tensor x = at::rand({5, 7}, at::kDouble);
  const Tensor grad = randn({5, 7}, at::kDouble);
  for (const c10::IValue& eps : std::vector<c10::IValue>{{}, 1e-3, 0.2}) {
    list.add_wide("aten::logit", {x, eps});
    list.add_wide("aten::logit_backward", {grad, x, eps});
  }
  const Tensor outside = at::tensor({-0.5, 0.0, 0.5, 1.0, 1.5}, at::kDouble);
  list.add_wide("aten::logit", {outside, c10::IValue()});
  list.add_wide("aten::logit", {outside, 0.25});
  list.add_wide("aten::logit_backward", {outside.add(2), outside, c10::IValue()});
  list.add_wide("aten::logit_backward", {outside.add(2), outside, 0.25});
}

void add_gates(CaseList& list) {
  const Tensor x = randn({4, 6, 2}, at::kDouble);
  list.add("aten::glu", {x, 1});
  list.add("aten::glu", {x});
  list.add("aten::glu_backward", {randn({4, 3, 2}, at::kDouble), x, 1});
  list.add("aten::glu_backward", {randn({4, 6, 1}, at::kDouble), x, -1});
  const Tensor weight = at::rand({1, 6, 1}, at::kDouble).mul(0.5);
  list.add("aten::_prelu_kernel", {x, weight});
  list.add("aten::_prelu_kernel_backward", {randn({4, 6, 2}, at::kDouble), x, weight});
}

}  // namespace

void add_activation_cases(CaseList& list) {
  for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{{4, 7}, {2, 3, 5}, {}, {0, 3}}) {
    // Far enough for all thresholds, without overflow in the parts that are not taken.
    const Tensor x = randn(sizes, at::kDouble).mul(4);
    add_forwards(list, x);
    add_backwards(list, x);
  }
  add_logits(list);
  add_gates(list);
}

}  // namespace halftone
