// Decompositions of softmax, log_softmax and their gradients.
#include <ATen/TensorOperators.h>

#include <limits>

#include "autograd/decompositions/boxed.h"
#include "autograd/decompositions/tables.h"

namespace halftone {
namespace {

using at::Tensor;

/// Less its largest element, so that no power is infinite. An empty tensor has none.
Tensor shifted(const Tensor& x, int64_t dim) {
  return x.numel() == 0 ? x : x - at::amax(x, dim, true);
}

Tensor softmax(const Tensor& x, int64_t dim) {
  const Tensor powers = shifted(x, dim).exp();
  return powers / powers.sum(dim, true);
}

Tensor log_softmax(const Tensor& x, int64_t dim) {
  const Tensor logits = shifted(x, dim);
  return logits - logits.exp().sum(dim, true).log();
}

/// Results are dense whatever the operand's strides are.
template <typename Function>
Decomposition any_softmax(Function function) {
  return boxed([function](const Tensor& x, int64_t dim, bool half_to_float) {
    const OpMath math(x.scalar_type());
    const Tensor result = function(dense(math.raise(x)), dim);
    return half_to_float ? result : math.lower(result);
  });
}

/// Their backwards take the result y, and are told of which type the operand was.
template <typename Function>
Decomposition any_softmax_backward(Function function) {
  return boxed([function](const Tensor& grad, const Tensor& y, int64_t dim, at::ScalarType type) {
    const OpMath math(y.scalar_type());
    return cast(function(dense(math.raise(grad)), dense(math.raise(y)), dim), type);
  });
}

Tensor softmax_backward(const Tensor& grad, const Tensor& y, int64_t dim) {
  const Tensor product = grad * y;
  return product - y * product.sum(dim, true);
}

Tensor log_softmax_backward(const Tensor& grad, const Tensor& y, int64_t dim) {
  return grad - y.exp() * grad.sum(dim, true);
}

/// Rows of nothing but -∞ give zeros.
Tensor safe_softmax(const Tensor& x, int64_t dim, std::optional<at::ScalarType> type) {
  const Tensor result = at::_softmax(type ? cast(x, *type) : x, dim, /*half_to_float=*/false);
  const Tensor masked = at::all(x.eq(-std::numeric_limits<double>::infinity()), dim, true);
  return at::where(masked, at::zeros_like(result), result);
}

Tensor log_of_sum(const Tensor& x, at::IntArrayRef dims, bool keepdim) {
  if (x.numel() == 0) return x.exp().sum(dims, keepdim).log();
  const Tensor largest = at::amax(x, dims, true);
  const Tensor infinite = largest.abs().eq(std::numeric_limits<double>::infinity());
  const Tensor shift = at::where(infinite, number_like(largest, 0), largest);
  return (x - shift).exp().sum(dims, keepdim).log() + (keepdim ? shift : at::squeeze(shift, dims));
}

}  // namespace

void add_softmaxes(DecompositionTable& table) {
  table.merge(DecompositionTable{
      {"aten::_log_softmax", any_softmax(log_softmax)},
      {"aten::_log_softmax_backward_data", any_softmax_backward(log_softmax_backward)},
      {"aten::_safe_softmax", boxed(safe_softmax)},
      {"aten::_softmax", any_softmax(softmax)},
      {"aten::_softmax_backward_data", any_softmax_backward(softmax_backward)},
      {"aten::logsumexp", boxed([](const Tensor& x, at::IntArrayRef dims, bool keepdim) {
         // Whole numbers have no logarithm: they become floats first.
         const bool whole = c10::isIntegralType(x.scalar_type(), /*includeBool=*/true);
         const OpMath math(whole ? at::get_default_dtype_as_scalartype() : x.scalar_type());
         return math.lower(log_of_sum(math.raise(x), dims, keepdim));
       })},
  });
}

}  // namespace halftone
