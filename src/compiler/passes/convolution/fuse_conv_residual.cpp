// fuse_conv_residual: the sum of a convolution without other readers and a tensor of the same sizes that
// lies in memory as the convolution's result does.
#include "compiler/passes/alias.h"
#include "compiler/passes/summand.h"

namespace halftone::compiler {

bool rewrite_fuse_conv_residual(PassContext& context) {
  const AliasSets aliases(context.graph);
  size_t fused = 0;
  for (Node* node : snapshot(context.graph)) {
    // The residual comes before the activation: a convolution that has one already cannot take it.
    const auto found = try_summand(*node, "halftone::conv", [](const Node& conv, const Value* residual) {
      return try_text(conv, "activation") == "none" && is_channels_last(residual);
    });
    if (!found || !is_channels_last(node->output())) continue;
    if (aliases.is_written(node->output()) || aliases.is_written(found->residual)) {
      context.note("%{} is added apart: it is written", found->residual->name());
      continue;
    }
    replace_value(node->output(), node, found->product->target(), inputs_with_residual(*found), {},
                  found->product->source());
    ++fused;
  }
  if (fused > 0) context.note("{}", counted(fused, "residual"));
  return fused > 0;
}

}  // namespace halftone::compiler
