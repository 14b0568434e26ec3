// Constants of a graph as the IValues that an operator's schema asks for.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include <vector>

#include "base/errors.h"
#include "halftone/graph/graph.h"

namespace halftone {

/// The scalar constant as an IValue of `type` (nullptr: as it is). An int becomes a float where the schema
/// says float. Throws kInvalidArgument if the type cannot hold it. Not for values, lists and subgraphs.
c10::IValue constant_to_ivalue(const Argument& constant, const c10::TypePtr& type);

/// A number as the 0-dimensional tensor that eager makes of it where an operator wants a tensor: it does not
/// raise the other operand's dtype.
c10::IValue number_to_tensor(const c10::IValue& number);

/// The elements as the list that `type` says (int[], Tensor[], Tensor?[], float[], …); a tuple where `type`
/// is nullptr.
c10::IValue list_to_ivalue(std::vector<c10::IValue> items, const c10::TypePtr& type);

/// The element type of a list type, also inside an optional; nullptr if it is not a list.
c10::TypePtr element_type(const c10::TypePtr& type);

/// One operand for each argument of the node's schema, in its order: read(argument, type) for those that the
/// node gives, constant(default, type) for the others. kInvalidArgument where one has neither.
template <typename Operand, typename Read, typename Constant>
std::vector<Operand> schema_operands(const Node& node, const Read& read, const Constant& constant) {
  std::vector<Operand> operands;
  for (const c10::Argument& expected : node.op()->schema().arguments()) {
    if (const Argument* given = node.try_input(expected.name())) {
      operands.push_back(read(*given, expected.type()));
    } else if (expected.default_value()) {
      operands.push_back(constant(*expected.default_value(), expected.type()));
    } else {
      fail(ErrorCode::kInvalidArgument, "operand {} is missing", expected.name());
    }
  }
  return operands;
}

}  // namespace halftone
