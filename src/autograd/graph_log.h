// Writes the graphs of a compilation where the user wants to read them.
#pragma once

#include <optional>
#include <string>

#include "halftone/autograd/aot_autograd.h"

namespace halftone {

/// What the options say, else what the environment says.
GraphLog graph_log_of(const std::optional<GraphLog>& wanted);

/// `part`: "joint", "forward", "backward", "inference". `number`: of the compilation in this process.
void log_graph(const GraphLog& log, const std::string& name, int64_t number, const char* part,
               const Graph& graph);

}  // namespace halftone
