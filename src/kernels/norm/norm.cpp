#include "kernels/norm/norm.h"

#include "base/errors.h"
#include "kernels/common/kernel_table.h"
#include "kernels/common/workspace.h"
#include "kernels/norm/kernels.h"
#include "kernels/quantize_rows/quantize_rows.h"

namespace halftone::kernels {
namespace {

const char* take_all(const NormProblem&) {
  return nullptr;
}

constexpr NormKernel kTable[] = {
#if defined(HALFTONE_X86)
    {"norm_f32_1x8_avx2", Isa::kAvx2, take_all, norm_row_avx2},
#endif
    {"norm_f32_1x1_scalar", Isa::kScalar, take_all, norm_row_scalar},
};

constexpr int64_t kElementsPerTask = 8192;  // a few microseconds

// From the float row y to the output; a float output was written in place.
void store(const NormProblem& p, const NormArgs& args, const QuantizeRowsKernel& quantize, int64_t r,
           const float* y) {
  if (args.type == OutputType::kBFloat16) {
    uint16_t* out = static_cast<uint16_t*>(args.out) + r * args.out_stride;
    for (int64_t i = 0; i < p.k; ++i) out[i] = to_bfloat16(y[i]);
  } else if (args.type == OutputType::kQuantizedRows) {
    const RowScale s =
        quantize.row(y, p.k, args.row_format, static_cast<uint8_t*>(args.out) + r * args.out_stride);
    args.out_scale[r] = s.scale;
    args.out_zero_point[r] = s.zero_point;
  }
}

}  // namespace

std::span<const NormKernel> norm_kernels() {
  return kTable;
}

size_t norm_workspace_bytes(const NormProblem& problem, int threads, OutputType type) {
  Workspace count;
  count.take<float>(type == OutputType::kFloat32 ? 0 : threads * problem.k);
  return count.bytes_needed();
}

void norm(const NormKernel& kernel, const NormProblem& p, const NormArgs& args, ParallelFor& parallel_for) {
  if (p.rows < 0 || p.k < 0) fail(ErrorCode::kInvalidArgument, "norm: negative size {} x {}", p.rows, p.k);
  if (!(args.eps >= 0.0f)) fail(ErrorCode::kInvalidArgument, "norm: eps is {}", args.eps);
  if (p.rows == 0 || p.k == 0) return;
  const bool direct = args.type == OutputType::kFloat32;
  float* scratch = nullptr;
  if (!direct)
    scratch = Workspace(args.workspace, args.workspace_bytes).take<float>(parallel_for.threads() * p.k);
  if (!direct && scratch == nullptr) fail(ErrorCode::kInvalidArgument, "norm: this output needs a workspace");
  const QuantizeRowsKernel& quantize =
      choose_kernel(quantize_rows_kernels(), QuantizeRowsProblem{p.rows, p.k}, kernel.isa);
  const int64_t per_task = kElementsPerTask / p.k + 1;
  parallel_for.run((p.rows + per_task - 1) / per_task, [&](int64_t task, int thread) {
    for (int64_t r = task * per_task; r < p.rows && r < (task + 1) * per_task; ++r) {
      NormRow row{p.kind,   p.k,    args.x + r * args.x_stride, nullptr, nullptr, args.gamma, args.beta,
                  args.eps, nullptr};
      if (args.residual != nullptr) row.residual = args.residual + r * args.residual_stride;
      if (args.sum != nullptr) row.sum = args.sum + r * args.sum_stride;
      row.y = direct ? static_cast<float*>(args.out) + r * args.out_stride : scratch + thread * p.k;
      kernel.row(row);
      store(p, args, quantize, r, row.y);
    }
  });
}

}  // namespace halftone::kernels
