// Puts a quantized weight into a graph: its tensors as inputs, and a halftone::* operator in the place of a
// node.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "halftone/graph/graph_module.h"
#include "halftone/quant/weight_format.h"
#include "quant/graph/find_layers.h"

namespace halftone {

/// A quantized weight whose tensors are inputs of the graph.
struct PlacedWeight {
  QuantizedWeight weight;
  std::vector<std::pair<std::string, Value*>> parts;
};

/// Adds the weight's tensors to the module, named after `base` (see part_name), and to its graph.
PlacedWeight place_weight(GraphModule& module, QuantizedWeight weight, const std::string& base);

/// Replaces the node by the operator of the weight's format, and by what its spelling needs around it. The
/// result keeps the node's name, metadata and source.
void rewrite_use(Graph& graph, const LayerUse& use, const PlacedWeight& weight);

/// Removes nodes that only prepared weights without users, and then those weights: from the graph's
/// inputs and from the module. `candidates`: the weights' operands before the rewrite. Other names of the
/// same memory go too.
void remove_unused_weights(GraphModule& module, const std::vector<std::string>& targets);

}  // namespace halftone
