#include "quant/weight/float_kernels.h"

#include "kernels/int4_dynamic_linear/int4_dynamic_linear.h"
#include "kernels/int4_weight_only_linear/int4_weight_only_linear.h"
#include "kernels/int8_weight_only_linear/int8_weight_only_linear.h"

namespace halftone {

ReadyLinear ready_int8_weight_only(const PackSource& source, const LinearProblem& p) {
  const kernels::Int8WeightOnlyProblem problem{p.m, p.n, p.k};
  const kernels::Int8WeightOnlyKernel& kernel = kernels::choose_int8_weight_only(problem);
  return {kernel.name, packed_int8_weight_only(source, kernel.tile_n),
          kernels::int8_weight_only_workspace_bytes(problem, p.threads, p.type),
          [&kernel, problem](const kernels::Fp32LinearArgs& args, ParallelFor& parallel_for) {
            kernels::int8_weight_only_linear(kernel, problem, args, parallel_for);
          }};
}

ReadyLinear ready_int4_weight_only(const PackSource& source, int group, const LinearProblem& p) {
  const kernels::Int4WeightOnlyProblem problem{p.m, p.n, p.k, group};
  const kernels::Int4WeightOnlyKernel& kernel = kernels::choose_int4_weight_only(problem);
  return {kernel.name, packed_int4_weight_only(source, group, kernel.tile_n),
          kernels::int4_weight_only_workspace_bytes(problem, p.threads, p.type),
          [&kernel, problem](const kernels::Fp32LinearArgs& args, ParallelFor& parallel_for) {
            kernels::int4_weight_only_linear(kernel, problem, args, parallel_for);
          }};
}

ReadyLinear ready_int4_dynamic(const PackSource& source, int group, const LinearProblem& p) {
  const kernels::Int4DynamicProblem problem{p.m, p.n, p.k, group};
  const kernels::Int4DynamicKernel& kernel = kernels::choose_int4_dynamic(problem);
  return {kernel.name, packed_int4_dynamic(source, group, kernel.tile_n),
          kernels::int4_dynamic_workspace_bytes(kernel, problem, p.threads, p.type),
          [&kernel, problem](const kernels::Fp32LinearArgs& args, ParallelFor& parallel_for) {
            kernels::int4_dynamic_linear(kernel, problem, args, parallel_for);
          }};
}

ReadyLinear ready_fp32(const PackSource& source, const LinearProblem& p) {
  const kernels::Fp32LinearProblem problem{p.m, p.n, p.k};
  const kernels::Fp32LinearKernel& kernel = kernels::choose_fp32_linear(problem);
  return {kernel.name, packed_fp32(source, kernel.tile_n),
          kernels::fp32_linear_workspace_bytes(kernel, problem, p.threads, p.type),
          [&kernel, problem](const kernels::Fp32LinearArgs& args, ParallelFor& parallel_for) {
            kernels::fp32_linear(kernel, problem, args, parallel_for);
          }};
}

LinearProblem problem_of(LinearCall& call) {
  return {call.m(), call.n(), call.k(), call.parallel_for().threads(), call.output_type()};
}

at::Tensor run_ready(LinearCall& call, const ReadyLinear& ready, const at::Tensor& rows) {
  kernels::Fp32LinearArgs args = call.float_args(ready.block);
  if (rows.defined()) {
    args.x = rows.const_data_ptr<float>();
    args.x_stride = call.k();
  }
  args.workspace_bytes = ready.workspace_bytes;
  args.workspace = call.workspace(ready.workspace_bytes);
  ready.call(args, call.parallel_for());
  return call.result();
}

}  // namespace halftone
