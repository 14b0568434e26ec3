// The inputs of a graph that a run writes to, and writing them.
#pragma once

#include <string>
#include <vector>

#include "halftone/graph/graph_module.h"

namespace halftone {

/// Whether some node, also of a subgraph, may write to an operand. Only looks at operators: cheap.
bool has_writers(const Graph& graph);

/// For each input of the graph: whether some node may write to it or to a view of it, by the operators' alias
/// annotations; also batch norm in training, whose schema hides that it updates the running statistics.
/// Outputs of kind mutation are not counted: those are values, applied by the code that runs the graph.
std::vector<bool> inputs_written_in_place(const Graph& graph);

/// Names of the parameters, buffers and constants that a run changes, in place or by a mutation output.
std::vector<std::string> mutated_tensor_names(const Graph& graph);

/// kGuard if an input that a mutation output is copied to shares memory with another: the graph has them
/// apart.
void check_written_inputs(const Graph& graph, const std::vector<c10::IValue>& user_inputs);

/// Copies the mutation outputs of a run into `state` (buffers by name) and into the user inputs; gives the
/// user outputs.
std::vector<c10::IValue> apply_mutations(const Graph& graph, std::vector<c10::IValue> outputs,
                                         const std::vector<c10::IValue>& user_inputs, const TensorMap& state);

}  // namespace halftone
