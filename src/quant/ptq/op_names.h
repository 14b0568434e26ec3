// Maps the names in backend configs and qconfig mappings to operators of our graphs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "halftone/graph/graph.h"

namespace halftone::ptq {

/// "aten::conv2d" of "aten::conv2d.padding".
std::string_view base_name(std::string_view target);

/// "torch.nn.Conv2d" of "torch.nn.modules.conv.Conv2d" and of "torch::nn::Conv2dImpl"; other types as they
/// are.
std::string public_type_name(std::string_view module_type);

/// Whether a layer of that type is one operation to configs: torch.nn's own, except for containers.
bool is_leaf_type(std::string_view public_name);

/// The names a node goes by in patterns: its module type where it is the operation of a leaf module, else the
/// functions and methods that make it; and always its operator, with and without the overload. An operation
/// inside a Python leaf module that is not the one the module is known for has the operator's names only.
std::vector<std::string> names_of(const Node& node);

/// Whether names_of() begins with a module type.
bool is_module_call(const Node& node);

/// kInvalidArgument if the name is an operator ("aten::…") that the dispatcher does not have.
void check_operator_name(std::string_view name, std::string_view place);

}  // namespace halftone::ptq
