// functionalize: operators that write to a fresh result without other readers become those that return a new
// one. The other passes know only these, and the plan finds by itself what may be computed in place.
#include "graph/rewrite/functionalize.h"

#include "compiler/passes/pass.h"

namespace halftone::compiler {

bool rewrite_functionalize(PassContext& context) {
  const size_t count = functionalize(context.graph);
  if (count > 0) context.note("{}", counted(count, "operator"));
  return count > 0;
}

}  // namespace halftone::compiler
