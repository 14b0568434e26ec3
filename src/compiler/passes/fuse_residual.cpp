// fuse_residual: the sum of a linear without other readers and a tensor of the same sizes.
#include "compiler/passes/alias.h"
#include "compiler/passes/summand.h"

namespace halftone::compiler {

bool rewrite_fuse_residual(PassContext& context) {
  const AliasSets aliases(context.graph);
  size_t fused = 0;
  for (Node* node : snapshot(context.graph)) {
    const auto found =
        try_summand(*node, "halftone::fused_linear", [](const Node&, const Value*) { return true; });
    if (!found) continue;
    if (aliases.is_written(node->output()) || aliases.is_written(found->residual) ||
        !is_contiguous(node->output())) {
      context.note("%{} is added apart: it is written, or its result is not contiguous",
                   found->residual->name());
      continue;
    }
    replace_value(node->output(), node, found->product->target(), inputs_with_residual(*found),
                  quantized_specs(node->output()->name(), *node->output()->meta(), false),
                  found->product->source());
    ++fused;
  }
  if (fused > 0) context.note("{}", counted(fused, "residual"));
  return fused > 0;
}

}  // namespace halftone::compiler
