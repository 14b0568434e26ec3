// Calls of losses and their backwards.
#include <ATen/ATen.h>

#include "autograd/decompositions/cases/case.h"

namespace halftone {
namespace {

using at::randn;
using at::Tensor;
const c10::IValue kNone;
const std::vector<int64_t> kReductions = {at::Reduction::None, at::Reduction::Mean, at::Reduction::Sum};

Tensor grad_of(at::IntArrayRef sizes, int64_t reduction) {
  return reduction == at::Reduction::None ? randn(sizes, at::kDouble) : randn({}, at::kDouble);
}

void add_differences(CaseList& list, int64_t reduction) {
  const std::vector<int64_t> sizes = {4, 6};
  const Tensor x = randn(sizes, at::kDouble);
  const Tensor target = randn(sizes, at::kDouble);
  const Tensor grad = grad_of(sizes, reduction);
  list.add("aten::mse_loss", {x, target, reduction});
  list.add("aten::mse_loss_backward", {grad, x, target, reduction});
  for (const double width : {0.5, 1.0}) {
    list.add("aten::smooth_l1_loss", {x, target, reduction, width});
    list.add("aten::smooth_l1_loss_backward", {grad, x, target, reduction, width});
    list.add("aten::huber_loss", {x, target, reduction, width});
    list.add("aten::huber_loss_backward", {grad, x, target, reduction, width});
  }
  list.add("aten::smooth_l1_loss", {x, target, reduction, 0.0});
  list.add("aten::smooth_l1_loss_backward", {grad, x, target, reduction, 0.0});
  const Tensor sign = target.sign();
  list.add("aten::soft_margin_loss", {x, sign, reduction});
  list.add("aten::soft_margin_loss_backward", {grad, x, sign, reduction});
}

void add_entropies(CaseList& list, int64_t reduction) {
  const std::vector<int64_t> sizes = {4, 6};
  const Tensor x = at::rand(sizes, at::kDouble).mul(0.9).add(0.05);
  const Tensor certain = at::where(randn(sizes).gt(0), at::ones({}, at::kDouble), at::zeros({}, at::kDouble));
  const Tensor target = at::rand(sizes, at::kDouble);
  const Tensor weight = at::rand(sizes, at::kDouble);
  const Tensor grad = grad_of(sizes, reduction);
  for (const c10::IValue& w : std::vector<c10::IValue>{kNone, weight}) {
    list.add("aten::binary_cross_entropy", {x, target, w, reduction});
    list.add("aten::binary_cross_entropy", {certain, target, w, reduction});
    list.add("aten::binary_cross_entropy_backward", {grad, x, target, w, reduction});
    const Tensor logits = randn(sizes, at::kDouble).mul(3);
    list.add("aten::binary_cross_entropy_with_logits", {logits, target, w, kNone, reduction});
    list.add("aten::binary_cross_entropy_with_logits",
             {logits, target, w, at::rand({6}, at::kDouble), reduction});
  }
}

/// One target is ignored, one class is named twice.
void add_classes(CaseList& list, int64_t reduction, const Tensor& x, const Tensor& target,
                 const std::string& op) {
  const Tensor weight = at::rand({5}, at::kDouble).add(0.1);
  const Tensor total = at::rand({}, at::kDouble).add(1);
  const Tensor grad = grad_of(target.sizes(), reduction);
  for (const c10::IValue& w : std::vector<c10::IValue>{kNone, weight}) {
    for (const int64_t ignored : {-100, 2}) {
      list.add("aten::" + op + "_forward", {x, target, w, reduction, ignored});
      list.add("aten::" + op + "_backward", {grad, x, target, w, reduction, ignored, total});
    }
  }
}

}  // namespace

void add_loss_cases(CaseList& list) {
  for (const int64_t reduction : kReductions) {
    add_differences(list, reduction);
    add_entropies(list, reduction);
    const Tensor rows = at::log_softmax(randn({4, 5}, at::kDouble), 1);
    add_classes(list, reduction, rows, at::tensor({0, 2, 4, 4}, at::kLong), "nll_loss");
    add_classes(list, reduction, rows[0], at::scalar_tensor(3, at::kLong), "nll_loss");
    const Tensor images = at::log_softmax(randn({2, 5, 3, 2}, at::kDouble), 1);
    add_classes(list, reduction, images, at::randint(5, {2, 3, 2}, at::kLong), "nll_loss2d");
  }
}

}  // namespace halftone
