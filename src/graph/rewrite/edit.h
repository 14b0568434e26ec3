// Changing a graph node by node while names and sources stay. For all passes.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "halftone/graph/graph.h"

namespace halftone {

/// The nodes as they are now: for walks that change the list.
std::vector<Node*> snapshot(const Graph& graph);

/// Inserts a node in front of `before` whose first output stands for `old_value`: it takes over its uses, its
/// metadata and its name. `more`: the other outputs. The old node stays, without uses of that value.
Node* replace_value(Value* old_value, Node* before, std::string_view target,
                    std::vector<NamedArgument> inputs, std::vector<OutputSpec> more, const Source& source);
/// The same for one output with metadata of its own.
Node* insert_for(Value* old_value, Node* before, std::string_view target, std::vector<NamedArgument> inputs,
                 std::optional<TensorMeta> meta, const Source& source);

/// Sets the operand of that schema name; one that was not given gets its place in the schema's order.
void set_operand(Node& node, std::string_view name, Argument value);
/// The named operand of the node, None if absent.
const Argument& operand(const Node& node, std::string_view name);
/// As an argument for a new node: the value, or None.
Argument optional_tensor(Value* value);

}  // namespace halftone
