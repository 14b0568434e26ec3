// How tensors, sizes and counts are written for people.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "halftone/graph.h"

namespace halftone::cli {

/// As Python writes it, without the "torch.": "float32", "bfloat16", "bool".
std::string dtype_name(c10::ScalarType dtype);
/// "[s0, 384]"; "[]" for a scalar.
std::string describe_sizes(const std::vector<SymExpr>& sizes);
std::string describe_sizes(at::IntArrayRef sizes);
/// What a value holds: "float32 [s0, 384]", "int", "None".
std::string describe_value(const Value& value);
/// "90.4 MB" (decimal units), "312 B".
std::string describe_bytes(int64_t bytes);
/// "22,713,216".
std::string with_commas(int64_t number);
/// A symbol's range: "1..64", "2..", "" where it is free.
std::string describe_range(const SymbolRange& range);

}  // namespace halftone::cli
