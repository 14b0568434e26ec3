// Whether the subgraphs of cond, while_loop, map and scan are sound and fit the operands they get.
#pragma once

#include <string>
#include <vector>

#include "halftone/graph/graph.h"

namespace halftone {

/// One clause each, to stand after the node's name; empty for nodes without subgraphs. Lints the subgraphs
/// themselves too.
std::vector<std::string> subgraph_problems(const Node& node);

}  // namespace halftone
