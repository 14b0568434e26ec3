#include "kernels/fp32_linear/fp32_linear.h"

#include "base/errors.h"
#include "kernels/common/kernel_table.h"
#include "kernels/fp32_linear/kernels.h"
#include "kernels/fp32_linear/panels.h"

namespace halftone::kernels {
namespace {

const char* take_all(const Fp32LinearProblem&) {
  return nullptr;
}

constexpr Fp32LinearKernel kTable[] = {
#if defined(HALFTONE_X86)
    {"fp32_linear_12x32_avx512vnni", Isa::kAvx512Vnni, take_all, 32, 12, fp32_pack_rows_avx2,
     fp32_multiply_avx512vnni, fp32_finish_32_avx2},
    {"fp32_linear_6x16_avx2", Isa::kAvx2, take_all, 16, 6, fp32_pack_rows_avx2, fp32_multiply_avx2,
     fp32_finish_16_avx2},
#endif
    {"fp32_linear_4x16_scalar", Isa::kScalar, take_all, 16, 4, fp32_pack_rows_scalar, fp32_multiply_scalar,
     fp32_finish_scalar},
};

}  // namespace

std::span<const Fp32LinearKernel> fp32_linear_kernels() {
  return kTable;
}

const Fp32LinearKernel& choose_fp32_linear(const Fp32LinearProblem& p, Isa isa) {
  if (p.m < 0 || p.n < 0 || p.k < 0) {
    fail(ErrorCode::kInvalidArgument, "fp32_linear: negative size {} x {} x {}", p.m, p.n, p.k);
  }
  return choose_kernel(fp32_linear_kernels(), p, isa);
}

size_t fp32_linear_workspace_bytes(const Fp32LinearKernel&, const Fp32LinearProblem& problem, int threads,
                                   OutputType type) {
  return fp32_panels_workspace_bytes(problem, threads, type);
}

void fp32_linear(const Fp32LinearKernel& kernel, const Fp32LinearProblem& p, const Fp32LinearArgs& args,
                 ParallelFor& parallel_for) {
  const PackedPanels weights = open_fp32_packed(args.weights, kernel.tile_n);
  if (p.m == 0 || p.n == 0) return;
  check_panel_args("fp32_linear", p, {p.m, weights.n, weights.k}, args);
  Fp32Panels source;
  source.panel_count = weights.panel_count;
  source.ready = weights.elements;
  run_fp32_panels(kernel, p, args, source, parallel_for);
}

}  // namespace halftone::kernels
