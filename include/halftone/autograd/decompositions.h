// Operators as compositions of simpler ones, for graphs that a compiler takes more easily.
#pragma once

#include <ATen/core/stack.h>

#include <functional>
#include <map>
#include <string>

#include "halftone/base/api.h"

namespace halftone {

/// Takes the operator's operands from the top of the stack (all of its schema's) and puts its results there.
using Decomposition = std::function<void(torch::jit::Stack& stack)>;

/// By the operator's full name: "aten::silu_backward", "aten::add.Tensor".
using DecompositionTable = std::map<std::string, Decomposition, std::less<>>;

/// Backwards of activations, mostly: what functorch decomposes by default.
HALFTONE_API DecompositionTable default_decompositions();

/// Those, and norms, softmaxes, activations, products with bias, statistics and losses, with their backwards:
/// what is left are products, reductions, elementwise operators and views.
HALFTONE_API DecompositionTable core_decompositions();

}  // namespace halftone
