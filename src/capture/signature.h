// The graph signature of a .pt2 file: which inputs are parameters, buffers, constants; which outputs mutate
// what.
#pragma once

#include "base/json.h"
#include "capture/pt2_graph.h"
#include "capture/pt2_types.h"
#include "halftone/graph/graph.h"

namespace halftone {

/// Adds the reader's inputs to the graph, each with the kind and the target that its spec gives.
void read_input_specs(const Pt2Context& context, const JsonCursor& signature, GraphReader& reader,
                      Graph& graph);

/// Sets the graph's outputs. To be called after the nodes were read.
void read_output_specs(const Pt2Context& context, const JsonCursor& signature, const GraphReader& reader,
                       Graph& graph);

}  // namespace halftone
