// fuse_conv_residual: the sum of a convolution, which nobody else reads, and a tensor of the same sizes that
// lies in memory as the convolution's result does.
#include "compiler/passes/alias.h"
#include "compiler/passes/rewrite.h"

namespace halftone::compiler {
namespace {

// The convolution among the operands of a sum that can take the other one as its residual.
Node* try_conv_of(const Node& sum, std::string_view mine, std::string_view other) {
  const Value *y = try_tensor(sum, mine), *residual = try_tensor(sum, other);
  if (y == nullptr || residual == nullptr || y == residual || !is_float(residual)) return nullptr;
  Node* conv = try_producer(y, {"halftone::conv"});
  if (conv == nullptr || only_user(y) != &sum || !is_absent(*conv, "residual") ||
      try_text(*conv, "activation") != "none")
    return nullptr;
  return same_sizes(y, residual) && is_channels_last(residual) ? conv : nullptr;
}

}  // namespace

bool rewrite_fuse_conv_residual(PassContext& context) {
  const AliasSets aliases(context.graph);
  size_t fused = 0;
  for (Node* node : snapshot(context.graph)) {
    if (!node->is("aten::add.Tensor") || try_number(*node, "alpha") != 1.0 || !is_float(node->output()))
      continue;
    // The second operand first: x + f(x) is how blocks are written, and f's convolution comes last.
    std::string_view residual = "self";
    Node* conv = try_conv_of(*node, "other", "self");
    if (conv == nullptr) {
      residual = "other";
      conv = try_conv_of(*node, "self", "other");
    }
    if (conv == nullptr || !is_channels_last(node->output())) continue;
    Value* other = try_tensor(*node, residual);
    if (aliases.is_written(node->output()) || aliases.is_written(other)) {
      context.note("%{} is added apart: it is written", other->name());
      continue;
    }
    std::vector<NamedArgument> inputs = conv->inputs();
    for (NamedArgument& input : inputs) {
      if (input.name == "residual") input.value = other;
    }
    replace_value(node->output(), node, conv->target(), std::move(inputs), {}, conv->source());
    ++fused;
  }
  if (fused > 0) context.note("{} residuals", fused);
  return fused > 0;
}

}  // namespace halftone::compiler
