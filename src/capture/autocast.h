// What torch's automatic mixed precision does to a node, written into the graph as casts.
#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <string>
#include <vector>

#include "halftone/graph.h"

namespace halftone {

/// Inside `wrap_with_autocast(enabled=True)` the exporter writes plain operators, and the dtypes that the
/// casts around them would give. Appends those casts to `graph` and lets `inputs` use them. `region` is the
/// low-precision dtype. Returns why the node cannot be written so, or an empty text.
std::string insert_autocast(Graph& graph, c10::ScalarType region, std::string_view target,
                            std::vector<NamedArgument>& inputs, const std::vector<OutputSpec>& outputs,
                            const Source& source);

}  // namespace halftone
