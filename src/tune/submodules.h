// Shared by inspecting, tuning by submodules and autoquant.
#pragma once

#include <string>
#include <vector>

#include "halftone/quant/quantize.h"
#include "halftone/tune/modules.h"

namespace halftone {

/// Layers that quantize_ would take, embeddings not among them, in the model's order.
std::vector<LayerReport> quantizable_layers(const GraphModule& module);

bool has_quantized_layers(const Graph& graph);

/// A pattern that matches these names and nothing else.
std::string exact_pattern(const std::vector<std::string>& names);

}  // namespace halftone
