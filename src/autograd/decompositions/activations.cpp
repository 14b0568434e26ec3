// Decompositions of activations that need more than a few element-wise operators: gelu, softplus, glu,
// logit, …
#include <ATen/TensorOperators.h>
#include <ATen/WrapDimUtils.h>

#include <numbers>
#include <string_view>

#include "autograd/decompositions/boxed.h"
#include "autograd/decompositions/logit_range.h"
#include "autograd/decompositions/tables.h"
#include "base/errors.h"

namespace halftone {
namespace {

using at::Scalar;
using at::Tensor;

Tensor gelu(const Tensor& x, std::string_view approximate) {
  const Tensor half = x.mul(0.5);
  if (approximate == "none") return half * x.mul(1 / std::numbers::sqrt2).erf().add(1);
  if (approximate != "tanh") {
    fail(ErrorCode::kInvalidArgument, "gelu: approximate is \"{}\", not none or tanh", approximate);
  }
  const Tensor inner = (x + (x * x * x).mul(0.044715)).mul(std::numbers::sqrt2 * std::numbers::inv_sqrtpi);
  return half * inner.tanh().add(1);
}

/// log(1 + exp(βx)) / β, and x itself where that is the same.
Tensor softplus(const Tensor& x, const Scalar& beta, const Scalar& threshold) {
  const bool scaled = beta.toDouble() != 1;
  const Tensor inner = scaled ? x.mul(beta) : x;
  const Tensor soft = inner.exp().log1p();
  return at::where(inner.gt(threshold), x, scaled ? soft.div(beta) : soft);
}

/// max(x, 0) + min(α (exp(x/α) - 1), 0)
Tensor celu(const Tensor& x, const Scalar& alpha) {
  const bool scaled = alpha.toDouble() != 1;
  const Tensor below = scaled ? x.div(alpha).expm1().mul(alpha) : x.expm1();
  return at::where(x.gt(0), x, below);
}

Tensor glu(const Tensor& x, int64_t dim) {
  const int64_t size = x.size(dim);
  if (size % 2 != 0) fail(ErrorCode::kInvalidArgument, "glu: dimension {} has an odd size, {}", dim, size);
  return at::slice(x, dim, 0, size / 2) * at::slice(x, dim, size / 2, size).sigmoid();
}

Tensor logit(const Tensor& x, std::optional<double> eps) {
  Tensor inside = x;
  if (eps) {
    const LogitRange range(x.scalar_type(), *eps);
    inside = x.clamp(range.low, range.high);
  }
  return (inside / at::rsub(inside, 1)).log();
}

/// log(1 / (1 + exp(-x))), and exp(-|x|), which its backward takes.
std::tuple<Tensor, Tensor> log_sigmoid(const Tensor& x) {
  const Tensor decay = x.abs().neg().exp();
  return {x.clamp(std::nullopt, 0) - decay.log1p(), decay};
}

/// Zero between -λ and λ.
Tensor hardshrink(const Tensor& x, const Scalar& lambda) {
  return at::where(x.abs().le(lambda), number_like(x, 0), x);
}

Tensor softshrink(const Tensor& x, const Scalar& lambda) {
  // x·0 and not 0: NaN stays NaN.
  return at::where(x.abs().gt(lambda), x - x.sign().mul(lambda), x.mul(0));
}

}  // namespace

void add_activations(DecompositionTable& table) {
  table.merge(DecompositionTable{
      {"aten::celu", in_op_math(celu)},
      {"aten::gelu", in_op_math(gelu)},
      {"aten::glu", in_op_math(glu)},
      {"aten::hardshrink", boxed(hardshrink)},
      {"aten::log_sigmoid_forward", in_op_math(log_sigmoid)},
      {"aten::logit", in_op_math(logit)},
      {"aten::mish", in_op_math([](const Tensor& x) { return x * at::softplus(x).tanh(); })},
      {"aten::_prelu_kernel",
       boxed([](const Tensor& x, const Tensor& weight) { return at::where(x.gt(0), x, weight * x); })},
      {"aten::silu", in_op_math([](const Tensor& x) { return x * x.sigmoid(); })},
      {"aten::softplus", in_op_math(softplus)},
      {"aten::softshrink", boxed(softshrink)},
      {"aten::threshold", in_op_math([](const Tensor& x, const Scalar& threshold, const Scalar& value) {
         return at::where(x.le(threshold), number_like(x, value), x);
       })},
  });
}

}  // namespace halftone
