// Decompositions of negative log-likelihood losses and their gradients.
#include <ATen/TensorOperators.h>

#include "autograd/decompositions/boxed.h"
#include "autograd/decompositions/losses.h"
#include "autograd/decompositions/tables.h"

namespace halftone {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<at::Tensor>;

/// Which targets count, and classes that may be looked up: 0 if a target does not count.
struct Targets {
  Targets(const Tensor& x, const Tensor& target, int64_t ignored)
      : dim(x.dim() < 2 ? 0 : 1),
        counts(target.ne(ignored)),
        classes(at::where(counts, target, number_like(target, 0))) {}

  int64_t dim;  ///< of the classes in x
  Tensor counts;
  Tensor classes;

  Tensor weights(const Tensor& of_classes) const { return at::index(of_classes, first_dimension(classes)); }
  Tensor or_zero(const Tensor& x) const { return at::where(counts, x, number_like(x, 0)); }
};

/// The loss, and the sum of the weights that it was divided by.
std::tuple<Tensor, Tensor> nll_loss(const Tensor& self, const Tensor& target, const OptionalTensor& weight,
                                    int64_t reduction, int64_t ignored) {
  const OpMath math(self.scalar_type());
  const Tensor x = math.raise(self);
  const Targets targets(x, target, ignored);
  Tensor losses =
      at::squeeze(at::gather(x, targets.dim, targets.classes.unsqueeze(targets.dim)), targets.dim).neg();
  Tensor weights;
  if (given(weight).defined()) {
    weights = targets.weights(math.raise(*weight));
    losses = losses * weights;
  }
  losses = targets.or_zero(losses);
  // A single row is always summed: its one loss is the sum.
  if (reduction == at::Reduction::None && x.dim() > 1) return {math.lower(losses), self.new_full({}, 0)};
  const Tensor total =
      weights.defined() ? at::sum(targets.or_zero(weights)) : cast(at::sum(targets.counts), x.scalar_type());
  const Tensor sum = at::sum(losses);
  return {math.lower(reduction == at::Reduction::Mean ? sum / total : sum), math.lower(total)};
}

Tensor nll_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                         const OptionalTensor& weight, int64_t reduction, int64_t ignored,
                         const Tensor& total_weight) {
  const OpMath math(self.scalar_type());
  const Targets targets(self, target, ignored);
  Tensor grad = math.raise(grad_output).neg();
  if (reduction == at::Reduction::Mean) grad = grad / math.raise(total_weight);
  if (given(weight).defined()) grad = grad * targets.weights(math.raise(*weight));
  const Tensor of_classes = math.lower(targets.or_zero(grad)).unsqueeze(targets.dim);
  const Tensor zeros = at::zeros_like(self, {}, at::MemoryFormat::Contiguous);
  return at::scatter(zeros, targets.dim, targets.classes.unsqueeze(targets.dim), of_classes);
}

}  // namespace

void add_nll_loss(DecompositionTable& table) {
  table.merge(DecompositionTable{
      {"aten::nll_loss_backward", boxed(nll_loss_backward)},
      {"aten::nll_loss_forward", boxed(nll_loss)},
      {"aten::nll_loss2d_backward", boxed(nll_loss_backward)},
      {"aten::nll_loss2d_forward", boxed(nll_loss)},
  });
}

}  // namespace halftone
