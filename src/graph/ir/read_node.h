// Reading nodes: constant operands with the schema's defaults, tensor operands, users. For all who match
// patterns in graphs.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "halftone/graph/graph.h"

namespace halftone {

/// The operand, or the schema's default if it was not given; nothing if it is a value or of another
/// kind.
std::optional<double> try_number(const Node& node, std::string_view name);  ///< integers too
std::optional<bool> try_flag(const Node& node, std::string_view name);
std::optional<std::string> try_text(const Node& node, std::string_view name);
/// A list of constant integers, or one; nothing where it is something else or was not given.
std::optional<std::vector<int64_t>> try_integers(const Node& node, std::string_view name);
bool is_absent(const Node& node, std::string_view name);  ///< None or not given
/// The tensor of that name; nullptr where it is None, absent or a number.
Value* try_tensor(const Node& node, std::string_view name);
/// The node behind a value if it has one of the targets; nullptr otherwise.
Node* try_producer(const Value* value, std::initializer_list<std::string_view> targets);
/// The value's only user, or nullptr (also where that is the graph's return).
Node* only_user(const Value* value);

}  // namespace halftone
