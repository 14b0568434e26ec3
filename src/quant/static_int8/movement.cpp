#include "quant/static_int8/movement.h"

#include "graph/operators/op_traits.h"

namespace halftone::static_int8 {

bool moves_elements(const Node& node) {
  if (!has_trait(node, OpTrait::kMovesElements)) return false;
  return node.outputs().size() == 1 || node.output(1)->users().empty();  // indices are no moved elements
}

std::string_view moved_operand(const Node& node) {
  if (node.is("aten::cat") || node.is("aten::stack")) return "tensors";
  if (node.is("halftone::int8_max_pool")) return "x";
  return node.try_input("input") != nullptr ? "input" : "self";
}

}  // namespace halftone::static_int8
