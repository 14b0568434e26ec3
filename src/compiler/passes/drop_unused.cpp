// drop_unused: parameters, buffers and constants that nothing reads any more, so that their memory can go.
#include <set>

#include "compiler/passes/rewrite.h"

namespace halftone::compiler {

bool rewrite_drop_unused(PassContext& context) {
  std::set<std::string_view> written;
  for (const GraphOutput& output : context.graph.outputs()) written.insert(output.target);
  size_t dropped = 0;
  for (size_t i = context.graph.inputs().size(); i-- > 0;) {
    const GraphInput& input = context.graph.inputs()[i];
    if (input.kind == InputKind::kUser || !input.value->users().empty() || written.contains(input.target))
      continue;
    const std::string target = input.target;
    context.graph.erase_input(i);
    context.tensors.erase(target);
    ++dropped;
  }
  if (dropped > 0) context.note("{} tensors", dropped);
  return dropped > 0;
}

}  // namespace halftone::compiler
