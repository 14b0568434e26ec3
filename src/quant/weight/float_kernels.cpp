#include "quant/weight/float_kernels.h"

#include "kernels/int4_dynamic_linear/int4_dynamic_linear.h"
#include "kernels/int4_weight_only_linear/int4_weight_only_linear.h"
#include "kernels/int8_weight_only_linear/int8_weight_only_linear.h"
#include "quant/weight/packing_cache.h"

namespace halftone {
namespace {

// Of the int4 kernels' blocks, which check their own.
constexpr int kInt4LayoutVersion = 1;

// The group stands in the layout too: the same parts could be read with another one.
template <typename Pack>
at::Tensor packed_int4(const LinearCall& call, const PackSource& source, int group, int tile_n, size_t bytes,
                       Pack pack) {
  return packed_block(source.parts, {source.kind, kInt4LayoutVersion, tile_n, group}, bytes, [&](void* out) {
    const at::Tensor w = source.values(), s = source.scale.contiguous();
    const at::Tensor z = source.zero_point.defined() ? source.zero_point.contiguous() : at::Tensor();
    const int8_t* zeros = z.defined() ? z.const_data_ptr<int8_t>() : nullptr;
    pack(kernels::Int4Weights{w.const_data_ptr<int8_t>(), call.k(), s.const_data_ptr<float>(), zeros,
                              call.n(), call.k(), group},
         tile_n, out);
  });
}

}  // namespace

at::Tensor run_int8_weight_only(LinearCall& call, const PackSource& source) {
  const int64_t n = call.n(), k = call.k();
  const kernels::Int8WeightOnlyProblem problem{call.m(), n, k};
  const kernels::Int8WeightOnlyKernel& kernel = kernels::choose_int8_weight_only(problem);
  const PackLayout layout{source.kind, kernels::kInt8WeightOnlyPackVersion, kernel.tile_n};
  const size_t bytes = kernels::int8_weight_only_packed_bytes(n, k, kernel.tile_n);
  const at::Tensor block = packed_block(source.parts, layout, bytes, [&](void* out) {
    const at::Tensor w = source.values(), s = source.scale.contiguous();
    kernels::pack_int8_weight_only({w.const_data_ptr<int8_t>(), k, s.const_data_ptr<float>(), n, k},
                                   kernel.tile_n, out);
  });
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
  const size_t bytes = kernels::int4_weight_only_packed_bytes(call.n(), call.k(), group,
                                                              source.zero_point.defined(), kernel.tile_n);
  const at::Tensor block =
      packed_int4(call, source, group, kernel.tile_n, bytes, kernels::pack_int4_weight_only);
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
  const size_t bytes = kernels::int4_dynamic_packed_bytes(call.n(), call.k(), group,
                                                          source.zero_point.defined(), kernel.tile_n);
  const at::Tensor block = packed_int4(call, source, group, kernel.tile_n, bytes, kernels::pack_int4_dynamic);
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
  const PackLayout layout{source.kind, kernels::kFp32PackVersion, kernel.tile_n};
  const size_t bytes = kernels::fp32_packed_bytes(call.n(), call.k(), kernel.tile_n);
  const at::Tensor block = packed_block(source.parts, layout, bytes, [&](void* out) {
    const at::Tensor w = source.values().contiguous();
    kernels::pack_fp32_weights({w.const_data_ptr<float>(), call.k(), call.n(), call.k()}, kernel.tile_n, out);
  });
  kernels::Fp32LinearArgs args = call.float_args(block);
  args.workspace_bytes =
      kernels::fp32_linear_workspace_bytes(kernel, problem, call.splitter().threads(), args.epilogue.type);
  args.workspace = call.workspace(args.workspace_bytes);
  kernels::fp32_linear(kernel, problem, args, call.splitter());
  return call.result();
}

}  // namespace halftone
