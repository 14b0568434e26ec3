// Whether a node's operands and outputs are what its operator or built-in takes and gives.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "halftone/graph/graph.h"

namespace halftone {

/// What a node is said to be. `op` is nullptr for built-ins.
struct NodeShape {
  std::string_view target;
  const c10::OperatorHandle* op = nullptr;
  const std::vector<NamedArgument>& inputs;
  size_t outputs = 0;
};

/// Operands without a name, unknown, given twice, or missing; wrong number of operands or outputs. One clause
/// each.
std::vector<std::string> arity_problems(const NodeShape& shape);

/// Operands of a kind that the schema does not take (a string if a tensor is needed), and outputs of
/// another type than the operator gives. One clause each. Numbers are taken if the schema says Tensor:
/// exported files hold x + 1 as add.Tensor.
std::vector<std::string> kind_problems(const Node& node);

/// "a string", "a list", "%x (int)": for messages.
std::string describe(const Argument& argument);

}  // namespace halftone
