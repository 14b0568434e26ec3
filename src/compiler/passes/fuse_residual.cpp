// fuse_residual: the sum of a linear, which nobody else reads, and a tensor of the same sizes.
#include "compiler/passes/alias.h"
#include "compiler/passes/rewrite.h"

namespace halftone::compiler {
namespace {

// The linear among the operands of a sum that can take the other one as its residual.
Node* try_linear(const Node& sum, std::string_view mine, std::string_view other) {
  const Value *y = try_tensor(sum, mine), *residual = try_tensor(sum, other);
  if (y == nullptr || residual == nullptr || y == residual || !is_float(residual)) return nullptr;
  Node* linear = try_producer(y, {"halftone::fused_linear"});
  if (linear == nullptr || y->index() != 0 || only_user(y) != &sum || !is_absent(*linear, "residual"))
    return nullptr;
  return same_sizes(y, residual) ? linear : nullptr;
}

}  // namespace

bool rewrite_fuse_residual(PassContext& context) {
  const AliasSets aliases(context.graph);
  size_t fused = 0;
  for (Node* node : snapshot(context.graph)) {
    if (!node->is("aten::add.Tensor") || try_number(*node, "alpha") != 1.0 || !is_float(node->output()))
      continue;
    // The second operand first: x + f(x) is how blocks are written, and f's linear comes last.
    std::string_view residual = "self";
    Node* linear = try_linear(*node, "other", "self");
    if (linear == nullptr) {
      residual = "other";
      linear = try_linear(*node, "self", "other");
    }
    if (linear == nullptr) continue;
    Value* other = try_tensor(*node, residual);
    if (aliases.is_written(node->output()) || aliases.is_written(other) || !is_contiguous(node->output())) {
      context.note("%{} is added apart: it is written, or its result is not contiguous", other->name());
      continue;
    }
    std::vector<NamedArgument> inputs = linear->inputs();
    for (NamedArgument& input : inputs) {
      if (input.name == "residual") input.value = other;
    }
    replace_value(node->output(), node, linear->target(), std::move(inputs),
                  quantized_specs(node->output()->name(), *node->output()->meta(), false), linear->source());
    ++fused;
  }
  if (fused > 0) context.note("{} residuals", fused);
  return fused > 0;
}

}  // namespace halftone::compiler
