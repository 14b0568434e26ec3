// What a model keeps between calls.
#pragma once

#include <string>
#include <vector>

#include "halftone/graph_module.h"

namespace halftone::cli {

/// Names of the buffers that the model writes to, in the graph's order; empty for a model without state.
std::vector<std::string> state_names(const Session& session);

}  // namespace halftone::cli
