// view_copies: view_copy, unsqueeze_copy and their like of a contiguous tensor give a contiguous tensor, as
// the plain view does: the copy can go. (Functionalized graphs are full of them.)
#include <array>

#include "compiler/passes/alias.h"
#include "compiler/passes/match.h"
#include "graph/rewrite/edit.h"

namespace halftone::compiler {

bool rewrite_view_copies(PassContext& context) {
  struct Spelling {
    std::string_view copy, view;
  };
  constexpr std::array<Spelling, 6> kSpellings = {{{"aten::view_copy", "aten::view"},
                                                   {"aten::unsqueeze_copy", "aten::unsqueeze"},
                                                   {"aten::squeeze_copy", "aten::squeeze"},
                                                   {"aten::squeeze_copy.dim", "aten::squeeze.dim"},
                                                   {"aten::squeeze_copy.dims", "aten::squeeze.dims"},
                                                   {"aten::expand_copy", "aten::expand"}}};
  size_t changed = 0;
  for (Node* node : snapshot(context.graph)) {
    for (const Spelling& spelling : kSpellings) {
      if (!node->is(spelling.copy)) continue;
      const Value* x = try_tensor(*node, "self");
      const AliasSets aliases(context.graph);
      if (x == nullptr || !is_contiguous(x) || aliases.is_user_input(x) ||
          !aliases.may_merge(node->output(), x))
        break;
      if (node->is("aten::expand_copy") && !same_sizes(node->output(), x)) break;
      std::vector<NamedArgument> inputs = node->inputs();
      replace_value(node->output(), node, spelling.view, std::move(inputs), {}, node->source());
      ++changed;
      break;
    }
  }
  if (changed > 0) context.note("{} instead of copies", counted(changed, "view"));
  return changed > 0;
}

}  // namespace halftone::compiler
