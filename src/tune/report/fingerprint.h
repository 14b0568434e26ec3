// The identity of a model: equal fingerprints mean the same model.
#pragma once

#include <string>

#include "halftone/graph/graph_module.h"

namespace halftone {

/// SHA-256 over the graph's text, ranges, guards, and every tensor's name, dtype, sizes and bytes. Tensors
/// are hashed by several threads.
std::string model_hash(const GraphModule& module);

}  // namespace halftone
