// Decompositions of layer norm and its gradient.
#include <ATen/TensorOperators.h>

#include <array>

#include "autograd/decompositions/boxed.h"
#include "autograd/decompositions/norm_dimensions.h"
#include "autograd/decompositions/tables.h"

namespace halftone {
namespace {

using at::IntArrayRef;
using at::Tensor;
using Three = std::tuple<Tensor, Tensor, Tensor>;

/// (x - mean) / √(variance + ε), over the last dimensions.
Three layer_norm(const Tensor& input, IntArrayRef shape, const std::optional<Tensor>& weight,
                 const std::optional<Tensor>& bias, double eps) {
  const OpMath math(input.scalar_type());
  const Tensor x = math.raise(input);
  const auto [variance, mean] = variance_and_mean(x, last_dimensions(x.dim(), shape.size()));
  const Tensor rstd = variance.add(eps).rsqrt();
  Tensor result = (x - mean) * rstd;
  if (given(weight).defined()) result = result * *weight;
  if (given(bias).defined()) result = result + *bias;
  // Statistics have the type of the parameters, which may be wider than the operand's.
  const OpMath statistics(given(weight).defined() ? weight->scalar_type() : input.scalar_type());
  return {math.lower(result), statistics.lower(mean), statistics.lower(rstd)};
}

struct LayerNormGradients {
  Tensor normalized;  ///< x̂, what weight and bias are applied to
  Tensor rstd;
  std::vector<int64_t> inner;
  double count = 1;

  /// Through x̂: rstd/n (n·g - Σg - x̂ Σ(g x̂)).
  Tensor of_input(const Tensor& grad) const {
    const Tensor sum = grad.sum(inner, true);
    const Tensor product_sum = (grad * normalized).sum(inner, true);
    return rstd.div(count) * (grad.mul(count) - sum - normalized * product_sum);
  }
};

Three layer_norm_backward(const Tensor& grad_output, const Tensor& input, IntArrayRef shape,
                          const Tensor& mean, const Tensor& rstd, const std::optional<Tensor>& weight,
                          const std::optional<Tensor>& /*bias*/, std::array<bool, 3> wanted) {
  const OpMath math(input.scalar_type());
  const Tensor grad = math.raise(grad_output);
  const Tensor wide_rstd = math.raise(rstd);
  const std::vector<int64_t> outer = first_dimensions(input.dim() - static_cast<int64_t>(shape.size()));
  const auto over_rows = [&](const Tensor& x) { return outer.empty() ? at::clone(x) : x.sum(outer); };
  LayerNormGradients gradients{.normalized = (math.raise(input) - mean) * wide_rstd,
                               .rstd = wide_rstd,
                               .inner = last_dimensions(input.dim(), shape.size()),
                               .count = static_cast<double>(c10::multiply_integers(shape))};
  const bool weighted = given(weight).defined();
  const OpMath parameters(weighted ? weight->scalar_type() : input.scalar_type());
  Three results;
  if (wanted[0]) {
    std::get<0>(results) = math.lower(gradients.of_input(weighted ? grad * math.raise(*weight) : grad));
  }
  if (wanted[1]) std::get<1>(results) = parameters.lower(over_rows(grad * gradients.normalized));
  if (wanted[2]) std::get<2>(results) = parameters.lower(over_rows(grad));
  return results;
}

}  // namespace

void add_layer_norm(DecompositionTable& table) {
  table.merge(DecompositionTable{
      {"aten::native_layer_norm", boxed(layer_norm)},
      {"aten::native_layer_norm_backward", boxed(layer_norm_backward)},
  });
}

}  // namespace halftone
