// fuse_norm_sum: a norm adds the two tensors whose sum it reads, and gives the sum to its other readers.
#include "compiler/passes/alias.h"
#include "compiler/passes/match.h"
#include "graph/rewrite/edit.h"

namespace halftone::compiler {
namespace {

Node* try_sum_before_norm(const Node& norm, const AliasSets& aliases) {
  const Value* x = try_tensor(norm, "x");
  Node* sum = try_producer(x, {"aten::add.Tensor"});
  if (sum == nullptr || try_number(*sum, "alpha") != 1.0 || !is_contiguous(x)) return nullptr;
  const Value *a = try_tensor(*sum, "self"), *b = try_tensor(*sum, "other");
  const bool plain = a != nullptr && b != nullptr && is_float(a) && is_float(b) && same_sizes(a, b);
  return plain && !aliases.is_written(a) && !aliases.is_written(b) ? sum : nullptr;
}

}  // namespace

bool rewrite_fuse_norm_sum(PassContext& context) {
  const AliasSets aliases(context.graph);
  size_t fused = 0;
  for (Node* norm : snapshot(context.graph)) {
    if (!norm->is("halftone::norm") || !is_absent(*norm, "residual")) continue;
    Node* sum = try_sum_before_norm(*norm, aliases);
    if (sum == nullptr) continue;
    set_operand(*norm, "x", operand(*sum, "self"));
    set_operand(*norm, "residual", operand(*sum, "other"));
    // Where the sum stood, so that its other readers find it; the norm's weights are inputs of the graph.
    context.graph.move_before(norm, sum);
    context.graph.replace_all_uses(sum->output(), norm->output(1));
    ++fused;
  }
  if (fused > 0) context.note("{}", counted(fused, "sum"));
  return fused > 0;
}

}  // namespace halftone::compiler
