// The kernels that keep activations in floating point, called on plain tensors: choose, pack (once, cached),
// run.
#pragma once

#include "quant/weight/linear_call.h"
#include "quant/weight/pack_weights.h"

namespace halftone {

at::Tensor run_int8_weight_only(LinearCall& call, const PackSource& source);
at::Tensor run_int4_weight_only(LinearCall& call, const PackSource& source, int group);
at::Tensor run_int4_dynamic(LinearCall& call, const PackSource& source, int group);
/// values are floats; scale and zero_point are not read.
at::Tensor run_fp32(LinearCall& call, const PackSource& source);

}  // namespace halftone
