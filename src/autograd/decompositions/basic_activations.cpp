// Decompositions of simple activations: elu, hardsigmoid, hardswish, hardtanh, leaky_relu.
#include <ATen/TensorOperators.h>
#include <ATen/ops/add.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/div.h>
#include <ATen/ops/expm1.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/where.h>

#include "autograd/decompositions/boxed.h"
#include "autograd/decompositions/tables.h"

namespace halftone {
namespace {

using at::Scalar;
using at::Tensor;

Tensor elu(const Tensor& x, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale) {
  const double below = alpha.toDouble() * scale.toDouble();
  return at::where(x.gt(0), x.mul(scale), x.mul(input_scale).expm1().mul(below));
}

Tensor leaky_relu(const Tensor& x, const Scalar& negative_slope) {
  return at::where(x.gt(0), x, x.mul(negative_slope));
}

/// min(max(x + 3, 0), 6)
Tensor ramp(const Tensor& x) {
  return x.add(3).clamp(0).clamp(std::nullopt, 6);
}

}  // namespace

void add_basic_activations(DecompositionTable& table) {
  table.merge(DecompositionTable{
      {"aten::elu", in_op_math(elu)},
      {"aten::hardsigmoid", in_op_math([](const Tensor& x) { return ramp(x).div(6); })},
      {"aten::hardswish", in_op_math([](const Tensor& x) { return (x * ramp(x)).div(6); })},
      {"aten::hardtanh",
       in_op_math([](const Tensor& x, const Scalar& low, const Scalar& high) { return x.clamp(low, high); })},
      {"aten::leaky_relu", in_op_math(leaky_relu)},
  });
}

}  // namespace halftone
