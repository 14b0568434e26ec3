// Shared by quantize_ on graphs and diagnose.
#pragma once

#include <cstdint>
#include <memory>

#include "halftone/graph/graph_module.h"
#include "halftone/quant/quantize.h"

namespace halftone {

/// Of all tensors; those that share memory count once.
int64_t bytes_of_tensors(const TensorMap& tensors);

/// quantize_() that leaves 4-bit weights as they are: linears whose weights have at most 16 evenly spaced values in each group
/// of 32 inputs (quant/weight/arithmetic/levels.h) become int4 with exactly those values, which another scale would change.
/// `rest` quantizes the others.
QuantizeReport quantize_keeping_levels(GraphModule& module, Int4Activations activations,
                                       const QuantConfig& rest, const QuantizeOptions& options);

}  // namespace halftone
