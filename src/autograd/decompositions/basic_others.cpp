// Decompositions of single operators: masked_fill, detach, conj_physical, is_same_size.
#include <ATen/ops/_conj_physical.h>
#include <ATen/ops/alias.h>
#include <ATen/ops/where.h>

#include "autograd/decompositions/boxed.h"
#include "autograd/decompositions/tables.h"
#include "base/errors.h"

namespace halftone {
namespace {

using at::Scalar;
using at::Tensor;

Tensor masked_fill_scalar(const Tensor& x, const Tensor& mask, const Scalar& value) {
  return at::where(mask, number_like(x, value), x);
}

Tensor masked_fill_tensor(const Tensor& x, const Tensor& mask, const Tensor& value) {
  if (value.dim() != 0) {
    fail(ErrorCode::kInvalidArgument, "masked_fill: the value has {} dimensions, not 0", value.dim());
  }
  return at::where(mask, cast(value, x.scalar_type()), x);
}

}  // namespace

void add_basic_others(DecompositionTable& table) {
  table.merge(DecompositionTable{
      {"aten::conj_physical",
       boxed([](const Tensor& x) { return x.is_complex() ? at::_conj_physical(x) : x; })},
      {"aten::detach", boxed([](const Tensor& x) { return at::alias(x); })},
      {"aten::is_same_size", boxed([](const Tensor& x, const Tensor& y) { return x.sizes() == y.sizes(); })},
      {"aten::masked_fill.Scalar", boxed(masked_fill_scalar)},
      {"aten::masked_fill.Tensor", boxed(masked_fill_tensor)},
  });
}

}  // namespace halftone
