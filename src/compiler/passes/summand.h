// Sums of a product, a linear or a convolution, that can add for itself.
#pragma once

#include "compiler/passes/match.h"
#include "graph/rewrite/edit.h"

namespace halftone::compiler {

struct Summand {
  Node* product = nullptr;
  Value* residual = nullptr;  ///< the other operand
};

/// The node of that target among the operands of an aten::add.Tensor, with the other operand as a residual
/// that it could take: float32, of the same sizes, the node has none yet, its first output is read by no one
/// else, and `takes` agrees. The second operand is asked first: x + f(x) is how blocks are written, and f's
/// product comes last.
std::optional<Summand> try_summand(const Node& sum, std::string_view target,
                                   bool (*takes)(const Node& product, const Value* residual));

/// The product's inputs with that residual.
std::vector<NamedArgument> inputs_with_residual(const Summand& summand);

}  // namespace halftone::compiler
