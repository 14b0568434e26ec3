// Operands of the export schema (the union "Argument") as operands of the graph.
#pragma once

#include <functional>
#include <string>

#include "base/json.h"
#include "capture/pt2_types.h"
#include "halftone/graph/graph.h"

namespace halftone {

/// Gives what stands for a value's name; throws if the name is not defined. The cursor is where the name
/// stands.
using ValueLookup = std::function<Argument(const std::string& name, const JsonCursor& place)>;
/// Reads a subgraph: the cursor stands at the schema's Graph.
using SubgraphReader = std::function<std::shared_ptr<Graph>(const JsonCursor& graph)>;

struct ArgumentReader {
  const Pt2Context& context;
  ValueLookup lookup;
  SubgraphReader subgraph;

  Argument read(const JsonCursor& cursor) const;
};

/// The same for a constant: every name in it is an error.
Argument read_constant_argument(const Pt2Context& context, const JsonCursor& cursor);

/// Argument kinds that no graph can hold (custom objects, operators as operands, …): why, or an empty text.
std::string_view why_unsupported_argument(std::string_view tag);

}  // namespace halftone
