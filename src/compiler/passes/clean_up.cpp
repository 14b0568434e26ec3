// clean_up: what changes nothing in inference goes. A copy goes only if no caller and no writer could
// tell.
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>

#include "compiler/passes/alias.h"
#include "compiler/passes/match.h"
#include "compiler/passes/view_chains.h"
#include "graph/operators/op_traits.h"
#include "graph/rewrite/edit.h"

namespace halftone::compiler {
namespace {

bool drops_nothing(const Node& node) {
  const auto training = try_flag(node, "train");
  return training == false || try_number(node, "p") == 0.0;
}

bool keeps_type(const Node& node, const Value* x) {
  const auto &from = x->meta(), &to = node.output()->meta();
  return from && to && from->dtype == to->dtype && from->device == to->device;
}

bool asks_for_format(const Node& node) {
  const Argument* format = node.try_input("memory_format");
  if (format == nullptr || format->is_none()) return false;
  const auto* which = format->get_if<c10::MemoryFormat>();
  return which == nullptr || *which != c10::MemoryFormat::Preserve;
}

// A copy of `x` that no reader can tell from it.
bool is_needless_copy(const Node& node, const Value* x, const AliasSets& aliases) {
  if (!keeps_type(node, x) || !same_sizes(node.output(), x)) return false;
  // contiguous() gives back its operand if it can; the others never do.
  if (!node.is("aten::contiguous") && !aliases.may_merge(node.output(), x)) return false;
  if (aliases.is_user_input(x)) return false;  // whose strides are the caller's
  const bool contiguous = node.is("aten::contiguous") || asks_for_format(node);
  if (!contiguous) return is_contiguous(x) || x->meta()->strides == node.output()->meta()->strides;
  const Argument* format = node.try_input("memory_format");
  const auto* which = format != nullptr ? format->get_if<c10::MemoryFormat>() : nullptr;
  return (which == nullptr || *which == c10::MemoryFormat::Contiguous) && is_contiguous(x);
}

bool is_identity_permutation(const Node& node, size_t rank) {
  if (node.is("aten::permute")) {
    const auto dims = try_integers(node, "dims");
    if (!dims) return false;
    for (size_t i = 0; i < dims->size(); ++i) {
      if (positive_dim((*dims)[i], rank) != static_cast<int64_t>(i)) return false;
    }
    return true;
  }
  if (!node.is("aten::transpose.int")) return false;
  const auto a = try_number(node, "dim0"), b = try_number(node, "dim1");
  return a && b &&
         positive_dim(static_cast<int64_t>(*a), rank) == positive_dim(static_cast<int64_t>(*b), rank);
}

// Whether output 0 is the first operand, and nothing else that the node gives is used.
bool changes_nothing(const Node& node, const Value* x, const AliasSets& aliases) {
  for (size_t i = 1; i < node.outputs().size(); ++i) {
    if (!node.output(i)->users().empty()) return false;
  }
  if (has_trait(node, OpTrait::kDropout)) {
    return drops_nothing(node) && (!node.is("aten::native_dropout") || aliases.may_merge(node.output(), x));
  }
  if (has_trait(node, OpTrait::kAlias)) return true;
  if (has_trait(node, OpTrait::kSizesDecide)) {
    if (node.is("aten::slice.Tensor") && try_number(node, "step") != 1.0) return false;
    return same_sizes(node.output(), x);
  }
  if (has_trait(node, OpTrait::kCopy)) return is_needless_copy(node, x, aliases);
  if (has_trait(node, OpTrait::kCast))
    return keeps_type(node, x) && !asks_for_format(node) && try_flag(node, "copy").value_or(false) == false &&
           x->meta()->device == node.output()->meta()->device;
  return is_identity_permutation(node, rank(x));
}

// What the exporter recorded proves it: inputs are checked at the door, and all else follows from them.
bool is_proven(const Node& node) {
  if (!node.is("aten::_assert_tensor_metadata")) return false;
  const Value* value = try_tensor(node, "a");
  if (value == nullptr || !value->meta() || !is_absent(node, "size") || !is_absent(node, "stride"))
    return false;
  const Argument *dtype = node.try_input("dtype"), *device = node.try_input("device"),
                 *layout = node.try_input("layout");
  if (dtype != nullptr && !dtype->is_none() && *dtype != Argument(value->meta()->dtype)) return false;
  if (device != nullptr && !device->is_none() && *device != Argument(value->meta()->device)) return false;
  return layout == nullptr || layout->is_none() || *layout == Argument(c10::Layout::Strided);
}

}  // namespace

bool rewrite_clean_up(PassContext& context) {
  size_t removed = 0;
  for (bool again = true; again;) {
    again = false;
    const AliasSets aliases(context.graph);
    for (Node* node : snapshot(context.graph)) {
      if (is_proven(*node)) {
        context.graph.erase(node);
        ++removed;
        continue;
      }
      if (node->op() == nullptr || node->inputs().empty() || node->outputs().empty()) continue;
      Value* x = node->input(0).value();
      if (x == nullptr || x->type() != ValueType::kTensor || node->output()->type() != ValueType::kTensor)
        continue;
      if (node->output()->users().empty() || !changes_nothing(*node, x, aliases)) continue;
      const bool copies = has_trait(*node, OpTrait::kCopy) || node->is("aten::native_dropout");
      context.graph.replace_all_uses(node->output(), x);
      ++removed;
      // The sets are those of the graph as it was: two returned copies of one value must not both become it
      // unseen.
      if (copies && aliases.is_returned(node->output())) {
        again = true;
        break;
      }
    }
    if (!again) removed += collapse_views(context.graph);
  }
  removed += context.graph.erase_dead_nodes();
  if (removed > 0) context.note("{} that change nothing", counted(removed, "node"));
  return removed > 0;
}

}  // namespace halftone::compiler
