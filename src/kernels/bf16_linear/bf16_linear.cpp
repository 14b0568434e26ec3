#include "kernels/bf16_linear/bf16_linear.h"

#include "base/errors.h"
#include "kernels/bf16_linear/kernels.h"
#include "kernels/common/kernel_table.h"
#include "kernels/fp32_linear/kernels.h"
#include "kernels/fp32_linear/panels.h"

namespace halftone::kernels {
namespace {

const char* take_all(const Bf16LinearProblem&) {
  return nullptr;
}

constexpr Bf16LinearKernel kTable[] = {
#if defined(HALFTONE_X86)
    {"bf16_linear_f32bf16_12x32_avx512vnni", Isa::kAvx512Vnni, take_all, 32, 12, fp32_pack_rows_avx2,
     bf16_multiply_avx512vnni, fp32_finish_32_avx2},
    {"bf16_linear_f32bf16_6x16_avx2", Isa::kAvx2, take_all, 16, 6, fp32_pack_rows_avx2, bf16_multiply_avx2,
     fp32_finish_16_avx2},
#endif
    {"bf16_linear_f32bf16_4x16_scalar", Isa::kScalar, take_all, 16, 4, fp32_pack_rows_scalar,
     bf16_multiply_scalar, fp32_finish_scalar},
};

}  // namespace

std::span<const Bf16LinearKernel> bf16_linear_kernels() {
  return kTable;
}

const Bf16LinearKernel& choose_bf16_linear(const Bf16LinearProblem& p, Isa isa) {
  if (p.m < 0 || p.n < 0 || p.k < 0) {
    fail(ErrorCode::kInvalidArgument, "bf16_linear: negative size {} x {} x {}", p.m, p.n, p.k);
  }
  return choose_kernel(bf16_linear_kernels(), p, isa);
}

size_t bf16_linear_workspace_bytes(const Bf16LinearProblem& p, int threads, OutputType type) {
  return fp32_panels_workspace_bytes(p, threads, type);
}

void bf16_linear(const Bf16LinearKernel& kernel, const Bf16LinearProblem& p, const Fp32LinearArgs& args,
                 ParallelFor& parallel_for) {
  const PackedPanels weights = open_bf16_packed(args.weights, kernel.tile_n);
  if (p.m == 0 || p.n == 0) return;
  check_panel_args("bf16_linear", p, {p.m, weights.n, weights.k}, args);
  Fp32Panels source;
  source.panel_count = weights.panel_count;
  source.ready = weights.elements;
  source.element_bytes = sizeof(uint16_t);
  run_fp32_panels(kernel, p, args, source, parallel_for);
}

}  // namespace halftone::kernels
