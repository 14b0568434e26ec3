#include "kernels/fp8_linear/fp8_linear.h"

#include "base/errors.h"
#include "kernels/common/kernel_table.h"
#include "kernels/common/tiling.h"
#include "kernels/common/workspace.h"
#include "kernels/fp32_linear/panels.h"
#include "kernels/fp8_linear/kernels.h"

namespace halftone::kernels {
namespace {

const char* take_all(const Fp8LinearProblem&) {
  return nullptr;
}

constexpr Fp8LinearKernel kTable[] = {
#if defined(HALFTONE_X86)
    {"fp8_linear_f32f8_12x32_avx512vnni",
     Isa::kAvx512Vnni,
     take_all,
     32,
     fp8_expand_avx2,
     nullptr,
     fp8_round_row_avx2,
     {fp8_multiply_e4m3fn_avx512vnni, fp8_multiply_e5m2_avx512vnni}},
    {"fp8_linear_f32f8_6x16_avx2",
     Isa::kAvx2,
     take_all,
     16,
     fp8_expand_avx2,
     fp8_multiply_rows_avx2,
     fp8_round_row_avx2,
     {}},
#endif
    {"fp8_linear_f32f8_4x16_scalar",
     Isa::kScalar,
     take_all,
     16,
     fp8_expand_scalar,
     nullptr,
     fp8_round_row_scalar,
     {}},
};

// Where the rounded activations end and the memory of the multiplication begins.
size_t rounded_bytes(const Fp8LinearProblem& p) {
  Workspace count;
  count.take<float>(p.activations == Fp8Activations::kDynamicE4m3 ? p.m * p.k : 0);
  return count.bytes_needed();
}

// The same call on rounded rows, which take the front of the workspace.
Fp32LinearArgs round_rows(const Fp8LinearKernel& kernel, const Fp8LinearProblem& p,
                          const Fp32LinearArgs& args, ParallelFor& parallel_for) {
  Workspace space(args.workspace, args.workspace_bytes);
  float* rounded = space.take<float>(p.m * p.k);
  const auto round = [&](int64_t r, int) {
    kernel.round_row(args.x + r * args.x_stride, p.k, rounded + r * p.k);
  };
  if (p.m * p.k <= kSerialPrepare) {
    for (int64_t r = 0; r < p.m; ++r) round(r, 0);
  } else {
    parallel_for.run(p.m, round);
  }
  Fp32LinearArgs rest = args;
  rest.x = rounded;
  rest.x_stride = p.k;
  const size_t used = rounded_bytes(p);
  if (args.workspace_bytes < used) {
    fail(ErrorCode::kInvalidArgument, "fp8_linear: workspace too small: {} bytes", args.workspace_bytes);
  }
  rest.workspace = static_cast<char*>(args.workspace) + used;
  rest.workspace_bytes = args.workspace_bytes - used;
  return rest;
}

}  // namespace

std::span<const Fp8LinearKernel> fp8_linear_kernels() {
  return kTable;
}

const Fp8LinearKernel& choose_fp8_linear(const Fp8LinearProblem& p, Isa isa) {
  if (p.m < 0 || p.n < 0 || p.k < 0) {
    fail(ErrorCode::kInvalidArgument, "fp8_linear: negative size {} x {} x {}", p.m, p.n, p.k);
  }
  return choose_kernel(fp8_linear_kernels(), p, isa);
}

size_t fp8_linear_workspace_bytes(const Fp8LinearProblem& p, int threads, OutputType type) {
  return rounded_bytes(p) + fp32_panels_workspace_bytes({p.m, p.n, p.k}, threads, type);
}

void fp8_linear(const Fp8LinearKernel& kernel, const Fp8LinearProblem& p, const Fp32LinearArgs& args,
                ParallelFor& parallel_for) {
  const PackedPanels weights = open_fp8_packed(args.weights, kernel.tile_n);
  if (p.m == 0 || p.n == 0) return;
  const Fp32LinearProblem floats{p.m, p.n, p.k};
  check_panel_args("fp8_linear", floats, {p.m, weights.n, weights.k}, args);
  const bool dynamic = p.activations == Fp8Activations::kDynamicE4m3;
  if (dynamic && args.x == nullptr) {
    fail(ErrorCode::kInvalidArgument,
         "fp8_linear: bfloat16 activations must be widened before they are rounded to e4m3fn");
  }
  Fp32LinearKernel multiplier = choose_fp32_linear(floats, kernel.isa);
  Fp32Panels source;
  source.panel_count = weights.panel_count;
  source.packed = &weights;
  const Fp32LinearArgs rows = dynamic ? round_rows(kernel, p, args, parallel_for) : args;
  const bool few_rows = p.m <= multiplier.rows && !has_huge_activations(rows, p.m, p.k);
  if (few_rows) source.multiply_rows = kernel.multiply_rows;
  const bool e5m2 = weights.format == static_cast<uint32_t>(Float8Format::kE5m2);
  if (const auto multiply = kernel.multiply[e5m2]; multiply != nullptr && few_rows) {
    multiplier.multiply = multiply;
    source.ready = weights.elements;
    source.element_bytes = 1;
    source.factor = weights.factor;
  } else {
    source.expand = kernel.expand;
  }
  run_fp32_panels(multiplier, floats, rows, source, parallel_for);
}

}  // namespace halftone::kernels
