// Finds every node of a .pt2 graph that Halftone cannot run or that is refused in files, before anything is
// built.
#pragma once

#include "base/json.h"
#include "capture/pt2_types.h"

namespace halftone {

/// Adds the unsupported nodes of the schema's Graph at `graph` to context.unsupported, those of its subgraphs
/// too.
void collect_unsupported(Pt2Context& context, const JsonCursor& graph);

}  // namespace halftone
