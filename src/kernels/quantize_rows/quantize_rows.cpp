#include "kernels/quantize_rows/quantize_rows.h"

#include "base/errors.h"
#include "kernels/quantize_rows/kernels.h"

namespace halftone::kernels {
namespace {

const char* take_all(const QuantizeRowsProblem&) {
  return nullptr;
}

constexpr QuantizeRowsKernel kTable[] = {
#if defined(HALFTONE_X86)
    {"quantize_rows_f32_8_1x32_avx2", Isa::kAvx2, take_all, quantize_row_avx2},
#endif
    {"quantize_rows_f32_8_1x1_scalar", Isa::kScalar, take_all, quantize_row_scalar},
};

// A row takes about 100 ns for each 1000 elements; below this many elements a task is not worth handing out.
constexpr int64_t kElementsPerTask = 16384;

}  // namespace

std::span<const QuantizeRowsKernel> quantize_rows_kernels() {
  return kTable;
}

void quantize_rows(const QuantizeRowsKernel& kernel, const QuantizeRowsProblem& problem,
                   const QuantizeRowsArgs& args, ParallelFor& parallel_for) {
  if (problem.rows < 0 || problem.k < 0) {
    fail(ErrorCode::kInvalidArgument, "quantize_rows: negative size {} x {}", problem.rows, problem.k);
  }
  const int64_t per_task = kElementsPerTask / (problem.k + 1) + 1;
  parallel_for.run((problem.rows + per_task - 1) / per_task, [&](int64_t task, int) {
    for (int64_t r = task * per_task; r < problem.rows && r < (task + 1) * per_task; ++r) {
      const RowScale s =
          kernel.row(args.x + r * args.x_stride, problem.k, args.format, args.q + r * args.q_stride);
      args.scale[r] = s.scale;
      args.zero_point[r] = s.zero_point;
    }
  });
}

}  // namespace halftone::kernels
