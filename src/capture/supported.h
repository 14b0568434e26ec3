// Finds every node of a .pt2 graph that Halftone cannot run, before anything is built.
#pragma once

#include "base/json.h"
#include "capture/pt2_types.h"

namespace halftone {

/// Adds the unsupported nodes of the schema's Graph at `graph` to context.unsupported, those of its subgraphs
/// too.
void collect_unsupported(Pt2Context& context, const JsonCursor& graph);

/// Throws kUnsupported with all of context.unsupported where there are any.
void throw_if_unsupported(const Pt2Context& context);

}  // namespace halftone
