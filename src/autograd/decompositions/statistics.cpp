// Decompositions of variances, standard deviations and vector norms.
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>

#include "autograd/decompositions/boxed.h"
#include "autograd/decompositions/tables.h"

namespace halftone {
namespace {

using at::IntArrayRef;
using at::OptionalIntArrayRef;
using at::Scalar;
using at::Tensor;

/// All of them where none are named.
std::vector<int64_t> dimensions(const Tensor& x, OptionalIntArrayRef named) {
  if (named && !named->empty()) return named->vec();
  std::vector<int64_t> all(x.dim());
  for (int64_t i = 0; i < x.dim(); ++i) all[i] = i;
  return all;
}

int64_t elements(const Tensor& x, IntArrayRef dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= x.dim() == 0 ? 1 : x.size(dim);
  return count;
}

struct Moments {
  Tensor variance;
  Tensor mean;
};

/// In two passes: first the mean, then the squares of what is left.
Moments moments(const Tensor& x, OptionalIntArrayRef named, const std::optional<Scalar>& correction,
                bool keepdim) {
  const std::vector<int64_t> dims = dimensions(x, named);
  const double freedom = static_cast<double>(elements(x, dims)) - correction.value_or(1).toDouble();
  const Tensor mean = x.mean(dims, true);
  const Tensor centred = x.is_complex() ? (x - mean).abs() : x - mean;
  const Tensor variance = (centred * centred).sum(dims, keepdim).div(std::max(freedom, 0.0));
  return {variance, keepdim ? mean : at::squeeze(mean, dims)};
}

using Pair = std::tuple<Tensor, Tensor>;

Tensor var(const Tensor& x, OptionalIntArrayRef dims, const std::optional<Scalar>& correction, bool keepdim) {
  return moments(x, dims, correction, keepdim).variance;
}

Tensor deviation(const Tensor& x, OptionalIntArrayRef dims, const std::optional<Scalar>& correction,
                 bool keepdim) {
  return moments(x, dims, correction, keepdim).variance.sqrt();
}

Pair var_mean(const Tensor& x, OptionalIntArrayRef dims, const std::optional<Scalar>& correction,
              bool keepdim) {
  const Moments both = moments(x, dims, correction, keepdim);
  return {both.variance, both.mean};
}

Pair std_mean(const Tensor& x, OptionalIntArrayRef dims, const std::optional<Scalar>& correction,
              bool keepdim) {
  const Moments both = moments(x, dims, correction, keepdim);
  return {both.variance.sqrt(), both.mean};
}

Tensor norm_of(const Tensor& x, double order, IntArrayRef dims, bool keepdim) {
  if (order == 0) return x.ne(0).sum(dims, keepdim, c10::toRealValueType(x.scalar_type()));
  if (order == 2 && !x.is_complex()) return (x * x).sum(dims, keepdim).sqrt();
  const Tensor size = x.abs();
  if (std::isinf(order)) return order > 0 ? at::amax(size, dims, keepdim) : at::amin(size, dims, keepdim);
  if (order == 1) return size.sum(dims, keepdim);
  return size.pow(order).sum(dims, keepdim).pow(1 / order);
}

Tensor vector_norm(const Tensor& x, const Scalar& order, OptionalIntArrayRef named, bool keepdim,
                   std::optional<at::ScalarType> type) {
  const OpMath math(type.value_or(x.scalar_type()));
  const bool sums = order.toDouble() != 0 && !std::isinf(order.toDouble());
  const Tensor wide = sums ? math.raise(x) : math.lower(x);
  return math.lower(norm_of(wide, order.toDouble(), dimensions(x, named), keepdim));
}

}  // namespace

void add_statistics(DecompositionTable& table) {
  table.merge(DecompositionTable{
      {"aten::linalg_vector_norm", boxed(vector_norm)},
      {"aten::std.correction", in_op_math(deviation)},
      {"aten::std_mean.correction", in_op_math(std_mean)},
      {"aten::var.correction", in_op_math(var)},
      {"aten::var_mean.correction", in_op_math(var_mean)},
  });
}

}  // namespace halftone
