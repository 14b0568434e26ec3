// Nodes of one graph made again in another.
#pragma once

#include "base/pointer_map.h"
#include "halftone/graph/graph.h"

namespace halftone {

/// Values of the graph that is read → values of the graph that is written.
using ValueMapping = PointerMap<Value*>;

/// The operand with its values replaced, subgraphs cloned. Every value must be in the mapping.
Argument copy_argument(const Argument& argument, const ValueMapping& mapping);

/// Name, type and metadata, for a value that shall be the same elsewhere.
OutputSpec spec_of(const Value& value);

/// Appends the node to `graph` with its source. Its outputs join the mapping; one that is there already keeps
/// what it is mapped to.
Node* append_copy(Graph& graph, const Node& node, ValueMapping& mapping);

}  // namespace halftone
