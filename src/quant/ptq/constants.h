// Parameters, buffers and constants of a module as operands of its graph.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "halftone/graph/graph_module.h"

namespace halftone::ptq {

/// The stored tensor behind an operand; undefined if it is absent, computed, given by the caller or
/// written by the model. `written`: mutated_tensor_names() of the graph, once for all of its nodes.
at::Tensor constant_operand(const GraphModule& module, const Node& node, std::string_view operand,
                            const std::vector<std::string>& written);
/// The name that tensor is stored by, or "".
std::string name_of_constant(const Node& node, std::string_view operand);
bool has_operand(const Node& node, std::string_view operand);

/// Puts a tensor into module and graph under `name`, or under name:2, name:3, … where that is taken.
Value* add_constant(GraphModule& module, const std::string& name, const at::Tensor& tensor);

}  // namespace halftone::ptq
