// Which inputs of a graph its nodes write to.
#pragma once

#include <vector>

#include "halftone/graph.h"

namespace halftone {

/// For each input of the graph: whether some node may write to it or to a view of it, by the operators' alias
/// annotations; also batch norm in training, whose schema hides that it updates the running statistics.
/// Outputs of kind mutation are not counted: those are values, applied by whoever runs the graph.
std::vector<bool> inputs_written_in_place(const Graph& graph);

}  // namespace halftone
