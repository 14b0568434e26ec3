// The kernels that keep activations in floating point, on plain tensors: chosen, packed (once, cached), run.
#pragma once

#include "quant/weight/linear_call.h"
#include "quant/weight/linear_format.h"
#include "quant/weight/pack_weights.h"

namespace halftone {

ReadyLinear ready_int8_weight_only(const PackSource& source, const LinearProblem& problem);
ReadyLinear ready_int4_weight_only(const PackSource& source, int group, const LinearProblem& problem);
ReadyLinear ready_int4_dynamic(const PackSource& source, int group, const LinearProblem& problem);
/// values are floats; scale and zero_point are not read.
ReadyLinear ready_fp32(const PackSource& source, const LinearProblem& problem);

LinearProblem problem_of(LinearCall& call);
/// `rows`: float32 [m, k], dense, in place of the call's own; undefined: none.
at::Tensor run_ready(LinearCall& call, const ReadyLinear& ready, const at::Tensor& rows = {});

}  // namespace halftone
