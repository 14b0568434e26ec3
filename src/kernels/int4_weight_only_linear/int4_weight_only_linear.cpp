#include "kernels/int4_weight_only_linear/int4_weight_only_linear.h"

#include "base/errors.h"
#include "kernels/common/kernel_table.h"
#include "kernels/fp32_linear/padded_rows.h"
#include "kernels/fp32_linear/panels.h"
#include "kernels/int4_weight_only_linear/kernels.h"

namespace halftone::kernels {
namespace {

const char* check_group(const Int4WeightOnlyProblem& p) {
  return refuse_int4_group(p.group);
}

constexpr Int4WeightOnlyKernel kTable[] = {
#if defined(HALFTONE_X86)
    {"int4_weight_only_linear_f32s4_12x32_avx512vnni", Isa::kAvx512Vnni, check_group, 32, int4_expand_avx2,
     int4_multiply_rows_avx512vnni, int4_pack_rows_avx2, 12},
    {"int4_weight_only_linear_f32s4_6x16_avx2", Isa::kAvx2, check_group, 16, int4_expand_avx2,
     int4_multiply_rows_avx2, int4_pack_rows_avx2, 5},
#endif
    {"int4_weight_only_linear_f32s4_4x16_scalar", Isa::kScalar, check_group, 16, int4_expand_scalar, nullptr,
     nullptr, 0},
};

}  // namespace

std::span<const Int4WeightOnlyKernel> int4_weight_only_kernels() {
  return kTable;
}

const Int4WeightOnlyKernel& choose_int4_weight_only(const Int4WeightOnlyProblem& p, Isa isa) {
  if (p.m < 0 || p.n < 0 || p.k < 0) {
    fail(ErrorCode::kInvalidArgument, "int4_weight_only_linear: negative size {} x {} x {}", p.m, p.n, p.k);
  }
  check_int4_group("int4_weight_only_linear", p.k, p.group);
  return choose_kernel(int4_weight_only_kernels(), p, isa);
}

size_t int4_weight_only_workspace_bytes(const Int4WeightOnlyProblem& p, int threads, OutputType type) {
  const int64_t k = int4_whole_groups(p.k, p.group);
  return padded_rows_bytes(p.m, p.k, k) + fp32_panels_workspace_bytes({p.m, p.n, k}, threads, type);
}

void int4_weight_only_linear(const Int4WeightOnlyKernel& kernel, const Int4WeightOnlyProblem& p,
                             const Fp32LinearArgs& args, ParallelFor& parallel_for) {
  const Int4WeightOnlyPacked weights = open_int4_weight_only(args.weights, kernel.tile_n);
  if (p.m == 0 || p.n == 0) return;
  check_panel_args("int4_weight_only_linear", {p.m, p.n, p.k}, {p.m, weights.n, weights.inputs}, args);
  if (weights.group != p.group) {
    fail(ErrorCode::kInvalidArgument,
         "int4_weight_only_linear: the weights have groups of {}, the problem says {}", weights.group,
         p.group);
  }
  const bool few_rows = kernel.multiply_rows != nullptr && p.m <= kernel.fused_rows;
  Fp32Panels source;
  source.panel_count = weights.panel_count;
  source.packed = &weights;
  source.expand = kernel.expand;
  if (few_rows && !has_huge_activations(args, p.m, p.k)) source.multiply_rows = kernel.multiply_rows;
  source.pack_rows = kernel.pack_rows;
  source.fused_rows = kernel.fused_rows;
  const Fp32LinearProblem whole{p.m, p.n, weights.k};
  const Fp32LinearArgs padded = pad_rows(args, p.m, p.k, weights.k, parallel_for);
  run_fp32_panels(choose_fp32_linear(whole, kernel.isa), whole, padded, source, parallel_for);
}

}  // namespace halftone::kernels
