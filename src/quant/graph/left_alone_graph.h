// The stored weights of a graph that quantize_ did not change.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "halftone/graph/graph_module.h"
#include "quant/select/left_alone.h"

namespace halftone {

/// Floating-point weights that the graph uses, each memory once; not those of quantized layers, nor the
/// stored tensors named in `chosen`, which the caller wanted to keep. Parameters with two dimensions or more,
/// and whatever convolutions, recurrent layers, embeddings and linears read.
std::vector<UntouchedWeight> find_untouched(const GraphModule& module, const std::set<std::string>& chosen);

}  // namespace halftone
