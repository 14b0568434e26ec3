// Replacing nodes while names and sources stay.
#pragma once

#include "compiler/passes/match.h"

namespace halftone::compiler {

/// Inserts a node in front of `before` whose first output stands for `old_value`: it takes over its uses, its
/// metadata and its name. `more`: the other outputs. The old node stays, without uses of that value.
Node* replace_value(Value* old_value, Node* before, std::string_view target,
                    std::vector<NamedArgument> inputs, std::vector<OutputSpec> more, const Source& source);

/// Sets the operand of that schema name; it must have been given.
void set_operand(Node& node, std::string_view name, Argument value);
/// The named operand of the node, None if absent.
const Argument& operand(const Node& node, std::string_view name);

/// The nodes as they are now: for walks that change the list.
std::vector<Node*> snapshot(const Graph& graph);

}  // namespace halftone::compiler
