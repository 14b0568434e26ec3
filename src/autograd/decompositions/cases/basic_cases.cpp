// Calls of default_decompositions()' operators.
#include <ATen/ATen.h>

#include "autograd/decompositions/cases/case.h"

namespace halftone {
namespace {

using at::randn;
using at::Tensor;

/// Of both signs, with the places where piecewise functions bend.
Tensor around_bends(at::IntArrayRef sizes) {
  Tensor values = randn(sizes, at::kDouble).mul(3);
  Tensor flat = values.view(-1);
  const std::vector<double> bends = {0, -0.0, 1, -1, 3, -3, 0.5, -0.5, 6, -6, 30, -30};
  for (int64_t i = 0; i < std::min<int64_t>(flat.numel() / 2, std::ssize(bends)); ++i) flat[i] = bends[i];
  return values;
}

const std::vector<std::vector<int64_t>> kShapes = {{4, 7}, {2, 3, 5}, {}, {0, 3}};

void add_activations(CaseList& list) {
  for (const auto& sizes : kShapes) {
    const Tensor x = around_bends(sizes);
    list.add("aten::elu", {x});
    list.add("aten::elu", {x, 1.5, 1.2, 0.7});
    list.add("aten::hardsigmoid", {x});
    list.add("aten::hardswish", {x});
    list.add("aten::hardtanh", {x});
    list.add("aten::hardtanh", {x, -0.7, 2.5});
    list.add("aten::leaky_relu", {x});
    list.add("aten::leaky_relu", {x, 0.3});
  }
  list.add("aten::hardswish", {around_bends({4, 6}).t()});
  list.add_exact("aten::hardtanh", {at::arange(-5, 5), -2, 3});
}

void add_backwards(CaseList& list) {
  for (const auto& sizes : kShapes) {
    const Tensor x = around_bends(sizes);
    const Tensor grad = randn(sizes, at::kDouble);
    const Tensor y = x.tanh();
    list.add("aten::elu_backward", {grad, 1.0, 1.0, 1.0, false, x});
    list.add("aten::elu_backward", {grad, 1.5, 1.2, 0.7, false, x});
    list.add("aten::elu_backward", {grad, 1.5, 1.2, 0.7, true, x.maximum(at::full({}, -1.5))});
    list.add("aten::gelu_backward", {grad, x, "none"});
    list.add("aten::gelu_backward", {grad, x, "tanh"});
    list.add("aten::hardsigmoid_backward", {grad, x});
    list.add("aten::hardswish_backward", {grad, x});
    list.add("aten::hardtanh_backward", {grad, x, -1.0, 1.0});
    list.add("aten::hardtanh_backward", {grad, x, -0.7, 0.7});
    list.add("aten::leaky_relu_backward", {grad, x, 0.1, false});
    list.add("aten::leaky_relu_backward", {grad, x, 0.1, true});
    list.add("aten::sigmoid_backward", {grad, x.sigmoid()});
    list.add("aten::silu_backward", {grad, x});
    list.add("aten::tanh_backward", {grad, y});
    list.add("aten::threshold_backward", {grad, x, 0});
    list.add("aten::threshold_backward", {grad, x, 0.5});
  }
  const Tensor x = randn({3, 4}, at::kComplexDouble);
  const Tensor grad = randn({3, 4}, at::kComplexDouble);
  list.add_exact("aten::sigmoid_backward", {grad, x});
  list.add_exact("aten::tanh_backward", {grad, x});
}

void add_others(CaseList& list) {
  for (const auto& sizes : kShapes) {
    const Tensor x = randn(sizes, at::kDouble);
    list.add("aten::conj_physical", {x});
    list.add("aten::detach", {x});
    list.add("aten::is_same_size", {x, x.add(1)});
    list.add("aten::masked_fill.Scalar", {x, x.gt(0), 2.5});
    list.add("aten::masked_fill.Scalar", {x, x.gt(0), -std::numeric_limits<double>::infinity()});
    list.add("aten::masked_fill.Tensor", {x, x.gt(0), at::full({}, 2.5, at::kDouble)});
  }
  list.add_exact("aten::conj_physical", {randn({3, 4}, at::kComplexFloat)});
  list.add("aten::is_same_size", {randn({3, 4}), randn({4, 3})});
  // Operand and mask are broadcast to each other; the value takes the operand's type.
  list.add("aten::masked_fill.Scalar", {randn({4}), randn({3, 1}).gt(0), 1});
  list.add_exact("aten::masked_fill.Tensor",
                 {randn({3, 4}), randn({3, 4}).gt(0), at::full({}, 3, at::kDouble)});
  list.add_exact("aten::masked_fill.Scalar", {at::arange(6), at::arange(6).gt(2), -1});
}

}  // namespace

void add_basic_cases(CaseList& list) {
  add_activations(list);
  add_backwards(list);
  add_others(list);
}

}  // namespace halftone
