// fold_scalars: numbers that the result of a linear is multiplied with, divided by or moved by, if it has no
// other reader:
//   (x · Wᵀ + b) · s = x · (W · s)ᵀ + b · s
//   (x · Wᵀ + b) + c = x · Wᵀ + (b + c)
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>

#include "compiler/passes/alias.h"
#include "compiler/passes/constants.h"
#include "compiler/passes/match.h"
#include "graph/rewrite/edit.h"

namespace halftone::compiler {
namespace {

struct Affine {
  double factor = 1, offset = 0;
};

std::optional<Affine> try_affine(const Node& node, const Value* y, const Constants& constants) {
  const bool first = try_tensor(node, "self") == y;
  const auto number = constants.number(operand(node, first ? "other" : "self"));
  if (!number) return std::nullopt;
  const bool alpha = try_number(node, "alpha") == 1.0;
  if (node.is("aten::mul.Tensor") || node.is("aten::mul.Scalar")) return Affine{*number, 0};
  if (first && (node.is("aten::div.Tensor") || node.is("aten::div.Scalar")) && *number != 0)
    return Affine{1 / *number, 0};
  if ((node.is("aten::add.Tensor") || node.is("aten::add.Scalar")) && alpha) return Affine{1, *number};
  if (first && (node.is("aten::sub.Tensor") || node.is("aten::sub.Scalar")) && alpha)
    return Affine{1, -*number};
  return std::nullopt;
}

}  // namespace

bool rewrite_fold_scalars(PassContext& context) {
  Constants constants(context);
  const AliasSets aliases(context.graph);
  const at::NoGradGuard no_grad;
  size_t folded = 0;
  for (Node* node : snapshot(context.graph)) {
    if (!node->is("aten::linear")) continue;
    // Each turn takes one number; the linear's place moves on.
    for (Node* linear = node; linear != nullptr;) {
      Value* y = linear->output();
      Node* user = only_user(y);
      const auto affine =
          user != nullptr && user->op() != nullptr ? try_affine(*user, y, constants) : std::nullopt;
      const at::Tensor weight = constants.tensor(try_tensor(*linear, "weight")),
                       bias = constants.tensor(try_tensor(*linear, "bias"));
      const bool known = weight.defined() && weight.scalar_type() == at::kFloat &&
                         (bias.defined() || is_absent(*linear, "bias"));
      if (!affine || !known || !is_float(y) || !is_float(user->output()) ||
          aliases.is_written(user->output()))
        break;
      const std::string name = user->output()->name();
      Argument new_weight = operand(*linear, "weight"), new_bias = operand(*linear, "bias");
      if (affine->factor != 1) {
        new_weight = constants.add(name + "_weight", weight * affine->factor);
        if (bias.defined()) new_bias = constants.add(name + "_bias", bias * affine->factor);
      }
      if (affine->offset != 0) {
        const at::Tensor moved = bias.defined()
                                     ? bias + affine->offset
                                     : at::full({weight.size(0)}, affine->offset, weight.options());
        new_bias = constants.add(name + "_bias", moved);
      }
      linear =
          replace_value(user->output(), user, "aten::linear",
                        {{"input", operand(*linear, "input")}, {"weight", new_weight}, {"bias", new_bias}},
                        {}, linear->source());
      ++folded;
    }
  }
  if (folded > 0) context.note("{}", counted(folded, "number"));
  return folded > 0;
}

}  // namespace halftone::compiler
