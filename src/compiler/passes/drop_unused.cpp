// drop_unused: parameters, buffers and constants that nothing reads any more, so that their memory can go.
#include "compiler/passes/match.h"
#include "graph/rewrite/edit.h"
#include "graph/rewrite/unused_inputs.h"

namespace halftone::compiler {

bool rewrite_drop_unused(PassContext& context) {
  const size_t dropped = remove_unused_inputs(context.graph, context.tensors).size();
  if (dropped > 0) context.note("{}", counted(dropped, "tensor"));
  return dropped > 0;
}

}  // namespace halftone::compiler
