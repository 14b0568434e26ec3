// Ranges of symbols and guards on input sizes, from a .pt2 file's range_constraints and guards_code.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "capture/pt2_types.h"
#include "halftone/graph/graph_module.h"

namespace halftone {

/// Fills module.ranges and module.guards. `argument_names`: the names of forward()'s arguments, where the
/// file gives them. What cannot be read becomes a note.
void read_shape_constraints(Pt2Context& context, const JsonCursor& program,
                            const std::vector<std::string>& argument_names, GraphModule& module);

}  // namespace halftone
