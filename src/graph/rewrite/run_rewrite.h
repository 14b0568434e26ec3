// What every pass gets around it, whoever's it is.
#pragma once

#include <functional>
#include <string_view>

#include "halftone/graph/graph.h"

namespace halftone {

/// Runs the pass `name` on the graph and gives what it gives: whether something changed. Then nodes without
/// uses are erased and the graph is checked (kInternal where the pass broke it). Graphs from files hold
/// constants and numbers of any sizes; what torch refuses to compute with them is kInvalidArgument.
bool run_rewrite(Graph& graph, std::string_view name, const std::function<bool()>& rewrite);

}  // namespace halftone
