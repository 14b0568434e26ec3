// One call of a graph: the part of a session that keeps nothing, and so is safe from several threads.
#pragma once

#include <string>
#include <vector>

#include "graph/run/input_check.h"
#include "halftone/graph/graph_module.h"

namespace halftone {

/// What a call needs; borrowed.
struct CallableGraph {
  const std::string& model;  ///< for messages
  const InputCheck& check;
  const GraphExecutor& executor;
  const TensorMap& tensors;
};

/// Flat inputs and outputs. Checks the inputs (kGuard), runs the executor in the caller's grad mode and
/// without autocast, and writes what the graph writes into inputs and into `state`. Errors name the model.
std::vector<c10::IValue> call_graph(const CallableGraph& graph, const std::vector<c10::IValue>& inputs,
                                    const TensorMap& state, const NodeHook* hook = nullptr);

/// Nested arguments as flat inputs.
std::vector<c10::IValue> flatten_call(const CallSpec& call, std::vector<c10::IValue> args,
                                      std::map<std::string, c10::IValue> kwargs);

/// Copies of the tensors that the graph writes, by name. Those that share memory in the model (tied buffers)
/// share it here too.
TensorMap copy_of_state(const std::string& model, const Graph& graph, const TensorMap& tensors);

}  // namespace halftone
