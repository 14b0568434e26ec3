// Inputs of a call as a trace needs them: each with memory of its own, so that none stands for another.
#pragma once

#include <ATen/core/ivalue.h>

#include <vector>

namespace halftone {

/// What becomes of one tensor that stands at two places.
enum class SameTensor {
  kSeparate,  ///< two inputs, as in torch.export
  kStaysOne,  ///< one tensor at both places, as autograd needs it
};

/// Tensors among the leaves that share memory with an earlier one are replaced by copies of the same geometry
/// and need of gradients.
std::vector<c10::IValue> with_own_memory(const std::vector<c10::IValue>& leaves, SameTensor same);

/// Whether the two show the same elements, or may.
bool share_elements(const c10::IValue& a, const c10::IValue& b);

}  // namespace halftone
