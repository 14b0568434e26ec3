// The meta kernel of all linear operators: the result's sizes and type, even if sizes are symbols.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace halftone {

/// An empty [..., n] like x. Raises as the operator would where x or bias do not fit W [n, k].
at::Tensor meta_linear(const char* name, const at::Tensor& x, const c10::SymInt& n, const c10::SymInt& k,
                       const std::optional<at::Tensor>& bias);

}  // namespace halftone
