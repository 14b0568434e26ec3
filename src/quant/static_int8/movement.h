// Operators that only move elements: they give the same on integers as on the floats behind them.
#pragma once

#include <string_view>

#include "halftone/graph/graph.h"

namespace halftone::static_int8 {

/// Views, permutations, slices, copies, concatenation, nearest interpolation and the like; max pooling as
/// halftone::int8_max_pool. Whether an operand makes it more than that (a padding with another value than 0)
/// is for the caller to see.
bool moves_elements(const Node& node);

/// The name of the operand that it moves: "self" for most, "tensors" for cat and stack.
std::string_view moved_operand(const Node& node);

}  // namespace halftone::static_int8
