#include "quant/weight/float_kernels.h"

#include "kernels/int4_dynamic_linear/int4_dynamic_linear.h"
#include "kernels/int4_weight_only_linear/int4_weight_only_linear.h"
#include "kernels/int8_weight_only_linear/int8_weight_only_linear.h"

namespace halftone {

at::Tensor run_int8_weight_only(LinearCall& call, const PackSource& source) {
  const kernels::Int8WeightOnlyProblem problem{call.m(), call.n(), call.k()};
  const kernels::Int8WeightOnlyKernel& kernel = kernels::choose_int8_weight_only(problem);
  const at::Tensor block = packed_int8_weight_only(source, kernel.tile_n);
  kernels::Fp32LinearArgs args = call.float_args(block);
  args.workspace_bytes =
      kernels::int8_weight_only_workspace_bytes(problem, call.splitter().threads(), args.epilogue.type);
  args.workspace = call.workspace(args.workspace_bytes);
  kernels::int8_weight_only_linear(kernel, problem, args, call.splitter());
  return call.result();
}

at::Tensor run_int4_weight_only(LinearCall& call, const PackSource& source, int group) {
  const kernels::Int4WeightOnlyProblem problem{call.m(), call.n(), call.k(), group};
  const kernels::Int4WeightOnlyKernel& kernel = kernels::choose_int4_weight_only(problem);
  const at::Tensor block = packed_int4_weight_only(source, group, kernel.tile_n);
  kernels::Fp32LinearArgs args = call.float_args(block);
  args.workspace_bytes =
      kernels::int4_weight_only_workspace_bytes(problem, call.splitter().threads(), args.epilogue.type);
  args.workspace = call.workspace(args.workspace_bytes);
  kernels::int4_weight_only_linear(kernel, problem, args, call.splitter());
  return call.result();
}

at::Tensor run_int4_dynamic(LinearCall& call, const PackSource& source, int group) {
  const kernels::Int4DynamicProblem problem{call.m(), call.n(), call.k(), group};
  const kernels::Int4DynamicKernel& kernel = kernels::choose_int4_dynamic(problem);
  const at::Tensor block = packed_int4_dynamic(source, group, kernel.tile_n);
  kernels::Fp32LinearArgs args = call.float_args(block);
  args.workspace_bytes =
      kernels::int4_dynamic_workspace_bytes(kernel, problem, call.splitter().threads(), args.epilogue.type);
  args.workspace = call.workspace(args.workspace_bytes);
  kernels::int4_dynamic_linear(kernel, problem, args, call.splitter());
  return call.result();
}

at::Tensor run_fp32(LinearCall& call, const PackSource& source) {
  const kernels::Fp32LinearProblem problem{call.m(), call.n(), call.k()};
  const kernels::Fp32LinearKernel& kernel = kernels::choose_fp32_linear(problem);
  const at::Tensor block = packed_fp32(source, kernel.tile_n);
  kernels::Fp32LinearArgs args = call.float_args(block);
  args.workspace_bytes =
      kernels::fp32_linear_workspace_bytes(kernel, problem, call.splitter().threads(), args.epilogue.type);
  args.workspace = call.workspace(args.workspace_bytes);
  kernels::fp32_linear(kernel, problem, args, call.splitter());
  return call.result();
}

}  // namespace halftone
