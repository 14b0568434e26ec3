// Records the operators that a decomposition calls: a small tracer at the dispatch key of the real one.
#pragma once

#include <string>
#include <vector>

#include "autograd/decompositions/cases/case.h"
#include "halftone/autograd/decompositions.h"

namespace halftone {

struct Expansion {
  std::vector<std::string> operators;  ///< in order, "aten::mul.Tensor"
  /// What a tracer could not take: writes to operands, operators that fall apart themselves, tensors that
  /// are neither an operand nor a result.
  std::vector<std::string> faults;
  torch::jit::Stack results;
};

/// Runs `decomposition` below autograd on copies of the case's operands. One thread at a time.
Expansion expand(const Decomposition& decomposition, const Case& call);

}  // namespace halftone
