// Decompositions of the gradients of select, slice, diagonal and embedding.
#include <ATen/TensorOperators.h>

#include "autograd/decompositions/boxed.h"
#include "autograd/decompositions/tables.h"

namespace halftone {
namespace {

using at::IntArrayRef;
using at::Tensor;

/// A row for each word, and in it the sum of what its places in `indices` give.
Tensor embedding_backward(const Tensor& grad, const Tensor& indices, int64_t words, int64_t padding,
                          bool scale_by_frequency) {
  const OpMath math(grad.scalar_type());
  const auto places = first_dimension(indices);
  Tensor rows = math.raise(grad);
  if (scale_by_frequency) {
    const Tensor frequency = at::index_put(indices.new_zeros({words}), places, at::ones_like(indices), true);
    rows = rows / at::index(frequency, places).unsqueeze(-1);
  }
  if (padding >= 0) rows = at::where(indices.ne(padding).unsqueeze(-1), rows, number_like(rows, 0));
  const Tensor none = rows.new_zeros({words, grad.size(-1)});
  return math.lower(at::index_put(none, places, rows, /*accumulate=*/true));
}

Tensor slice_backward(const Tensor& grad, IntArrayRef sizes, int64_t dim, int64_t start, int64_t end,
                      int64_t step) {
  return at::slice_scatter(grad.new_zeros(sizes), grad, dim, start, end, step);
}

Tensor select_backward(const Tensor& grad, IntArrayRef sizes, int64_t dim, int64_t index) {
  return at::select_scatter(grad.new_zeros(sizes), grad, dim, index);
}

Tensor diagonal_backward(const Tensor& grad, IntArrayRef sizes, int64_t offset, int64_t dim1, int64_t dim2) {
  return at::diagonal_scatter(grad.new_zeros(sizes), grad, offset, dim1, dim2);
}

}  // namespace

void add_indexing(DecompositionTable& table) {
  table.merge(DecompositionTable{
      {"aten::diagonal_backward", boxed(diagonal_backward)},
      {"aten::embedding_dense_backward", boxed(embedding_backward)},
      {"aten::select_backward", boxed(select_backward)},
      {"aten::slice_backward", boxed(slice_backward)},
  });
}

}  // namespace halftone
