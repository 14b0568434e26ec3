// A graph as TorchScript.
#pragma once

#include <ATen/core/ivalue.h>

#include <memory>
#include <vector>

#include "halftone/graph/graph_module.h"

namespace torch::jit {
struct Graph;
}

namespace halftone {

struct TorchScript {
  std::shared_ptr<torch::jit::Graph> graph;
  /// Tensors for the last inputs of the graph: numbers that operators take as tensors. TorchScript's own
  /// constants forget that such a tensor was a number, and it would raise the type of results.
  std::vector<c10::IValue> numbers;
};

/// Inputs are those of the graph, parameters too; outputs are all of the graph's. kUnsupported, naming the
/// node, for arithmetic on sizes, subgraphs, and operators that TorchScript does not find by their operands.
TorchScript to_torch_script(const Graph& graph);

/// The same, run by TorchScript's executor.
std::shared_ptr<const GraphExecutor> torch_script_executor(std::shared_ptr<const Graph> graph);

}  // namespace halftone
