// Tensors, sizes and counts as readable text.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "halftone/graph/graph.h"

namespace halftone::cli {

/// As Python writes it, without the "torch.": "float32", "bfloat16", "bool".
std::string dtype_name(c10::ScalarType dtype);
/// "[2, 384]"; "[]" for a scalar.
std::string describe_sizes(at::IntArrayRef sizes);
/// What a value holds: "float32 [s0, 384]", "int", "None".
std::string describe_value(const Value& value);
/// The same for what a graph returns, which may be a constant.
std::string describe_result(const Argument& result);

}  // namespace halftone::cli
