// Reading nodes: constant operands with the schema's defaults, tensor operands, users. For all who match
// patterns in graphs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "halftone/graph.h"

namespace halftone {

/// The operand, or the schema's default if it was not given; nothing if it is a value or of another
/// kind.
std::optional<double> try_number(const Node& node, std::string_view name);  ///< integers too
std::optional<bool> try_flag(const Node& node, std::string_view name);
std::optional<std::string> try_text(const Node& node, std::string_view name);
/// The tensor of that name; nullptr if it is None, absent or a number.
Value* try_tensor(const Node& node, std::string_view name);
/// The value's only user, or nullptr (even if that is the graph's return).
Node* only_user(const Value* value);

}  // namespace halftone
