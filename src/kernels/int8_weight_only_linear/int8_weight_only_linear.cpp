#include "kernels/int8_weight_only_linear/int8_weight_only_linear.h"

#include "base/errors.h"
#include "kernels/common/kernel_table.h"
#include "kernels/fp32_linear/panels.h"
#include "kernels/int8_weight_only_linear/kernels.h"

namespace halftone::kernels {
namespace {

const char* take_all(const Int8WeightOnlyProblem&) {
  return nullptr;
}

constexpr Int8WeightOnlyKernel kTable[] = {
#if defined(HALFTONE_X86)
    {"int8_weight_only_linear_f32s8_12x32_avx512vnni", Isa::kAvx512Vnni, take_all, 32, int8_expand_avx2,
     nullptr, int8_multiply_avx512vnni, 48},
    {"int8_weight_only_linear_f32s8_6x16_avx2", Isa::kAvx2, take_all, 16, int8_expand_avx2,
     int8_multiply_rows_avx2, int8_multiply_avx2, INT64_MAX},
#endif
    {"int8_weight_only_linear_f32s8_4x16_scalar", Isa::kScalar, take_all, 16, int8_expand_scalar, nullptr,
     nullptr, 0},
};

}  // namespace

std::span<const Int8WeightOnlyKernel> int8_weight_only_kernels() {
  return kTable;
}

const Int8WeightOnlyKernel& choose_int8_weight_only(const Int8WeightOnlyProblem& p, Isa isa) {
  if (p.m < 0 || p.n < 0 || p.k < 0) {
    fail(ErrorCode::kInvalidArgument, "int8_weight_only_linear: negative size {} x {} x {}", p.m, p.n, p.k);
  }
  return choose_kernel(int8_weight_only_kernels(), p, isa);
}

size_t int8_weight_only_workspace_bytes(const Int8WeightOnlyProblem& p, int threads, OutputType type) {
  return fp32_panels_workspace_bytes({p.m, p.n, p.k}, threads, type);
}

void int8_weight_only_linear(const Int8WeightOnlyKernel& kernel, const Int8WeightOnlyProblem& p,
                             const Fp32LinearArgs& args, ParallelFor& parallel_for) {
  const PackedPanels weights = open_int8_weight_only(args.weights, kernel.tile_n);
  if (p.m == 0 || p.n == 0) return;
  const Fp32LinearProblem floats{p.m, p.n, p.k};
  check_panel_args("int8_weight_only_linear", floats, {p.m, weights.n, weights.k}, args);
  Fp32Panels source;
  source.panel_count = weights.panel_count;
  source.packed = &weights;
  Fp32LinearKernel multiplier = choose_fp32_linear(floats, kernel.isa);
  const bool in_registers = kernel.multiply != nullptr && p.m <= kernel.register_rows;
  if (in_registers && !has_huge_activations(args, p.m, p.k)) {
    source.multiply_rows = kernel.multiply_rows;
    multiplier.multiply = kernel.multiply;
    source.ready = weights.elements;
    source.element_bytes = 1;
    source.factor = weights.factor;
  } else {
    source.expand = kernel.expand;
  }
  run_fp32_panels(multiplier, floats, args, source, parallel_for);
}

}  // namespace halftone::kernels
