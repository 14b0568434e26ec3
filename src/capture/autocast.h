// torch's automatic mixed precision, written into the graph as casts.
#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <string>
#include <vector>

#include "halftone/graph/graph.h"

namespace halftone {

/// Inside `wrap_with_autocast(enabled=True)` the exporter writes plain operators. Appends to `graph` the
/// casts that torch would do before the operator, lets `inputs` use them, and sets the dtypes of `outputs`.
/// `region` is the low-precision dtype. Non-strict exports record the dtypes that these casts give, which is
/// checked; strict ones record them as if autocast were off (`plain_dtypes` is set when that is seen).
/// Returns why the node cannot be written so, or an empty text.
std::string insert_autocast(Graph& graph, c10::ScalarType region, std::string_view target,
                            std::vector<NamedArgument>& inputs, std::vector<OutputSpec>& outputs,
                            const Source& source, bool& plain_dtypes);

}  // namespace halftone
