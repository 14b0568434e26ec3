// The kernels that keep activations in floating point, called on plain tensors: choose, pack (once, cached),
// run.
#pragma once

#include <c10/util/FunctionRef.h>

#include <string_view>
#include <vector>

#include "quant/weight/linear_call.h"

namespace halftone {

/// What a block is packed from, and what it is cached by.
struct PackSource {
  std::string_view kind;          ///< of the layout; a literal
  std::vector<at::Tensor> parts;  ///< as stored
  /// int8 [n, k] (fp32_linear: float32); called only where there is no block yet.
  c10::function_ref<at::Tensor()> values;
  at::Tensor scale;       ///< float32 [n] or [n, groups]
  at::Tensor zero_point;  ///< int8 [n, groups], or undefined
};

at::Tensor run_int8_weight_only(LinearCall& call, const PackSource& source);
at::Tensor run_int4_weight_only(LinearCall& call, const PackSource& source, int group);
at::Tensor run_int4_dynamic(LinearCall& call, const PackSource& source, int group);
/// values are floats; scale and zero_point are not read.
at::Tensor run_fp32(LinearCall& call, const PackSource& source);

}  // namespace halftone
