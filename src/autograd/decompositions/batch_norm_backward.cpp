// Decomposition of the gradient of batch norm.
#include <ATen/TensorOperators.h>

#include <array>

#include "autograd/decompositions/boxed.h"
#include "autograd/decompositions/norm_dimensions.h"
#include "autograd/decompositions/tables.h"

namespace halftone {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<at::Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;

struct Sums {
  Tensor grad;     ///< Σg, [C]
  Tensor product;  ///< Σg·(x - mean), [C]
};

/// In training the statistics depend on x: rstd·w (g - Σg/n - (x - mean) rstd² Σg(x - mean)/n).
Tensor through_batch(const Tensor& grad, const Tensor& centred, const Tensor& rstd, const Tensor& factor,
                     const Sums& sums) {
  const int64_t dims = grad.dim();
  const double share = static_cast<double>(grad.size(1)) / static_cast<double>(grad.numel());
  const Tensor mean_grad = beside_channels(sums.grad.mul(share), dims);
  const Tensor projection = beside_channels(sums.product.mul(share) * (rstd * rstd), dims);
  return (grad - centred * projection - mean_grad) * factor;
}

Three batch_norm_backward(const Tensor& grad_output, const Tensor& input, const OptionalTensor& weight,
                          const OptionalTensor& running_mean, const OptionalTensor& running_variance,
                          const OptionalTensor& save_mean, const OptionalTensor& save_rstd, bool train,
                          double eps, std::array<bool, 3> wanted) {
  const OpMath math(input.scalar_type());
  const Tensor grad = math.raise(grad_output);
  const Tensor rstd =
      train ? math.raise(given(save_rstd)) : math.raise(given(running_variance)).add(eps).rsqrt();
  const Tensor wide_weight = math.raise(given(weight));
  const std::vector<int64_t> dims = all_but_channels(input.dim());
  const bool through_statistics = wanted[0] && train;
  Tensor centred;
  Sums sums;
  if (wanted[2] || through_statistics) sums.grad = grad.sum(dims);
  if (wanted[1] || through_statistics) {
    centred = math.raise(input) - beside_channels(given(train ? save_mean : running_mean), input.dim());
    sums.product = (grad * centred).sum(dims);
  }
  Three results;
  if (wanted[0]) {
    const Tensor factor = beside_channels(wide_weight.defined() ? rstd * wide_weight : rstd, input.dim());
    const Tensor grad_input = train ? through_batch(grad, centred, rstd, factor, sums) : grad * factor;
    std::get<0>(results) = math.lower(grad_input);
  }
  const at::ScalarType type = wide_weight.defined() ? weight->scalar_type() : input.scalar_type();
  if (wanted[1]) std::get<1>(results) = cast(sums.product * rstd, type);
  if (wanted[2]) std::get<2>(results) = cast(sums.grad, type);
  return results;
}

}  // namespace

void add_batch_norm_backward(DecompositionTable& table) {
  table.emplace("aten::native_batch_norm_backward", boxed(batch_norm_backward));
}

}  // namespace halftone
