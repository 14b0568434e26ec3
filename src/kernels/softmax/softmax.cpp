#include "kernels/softmax/softmax.h"

#include "base/errors.h"
#include "kernels/softmax/kernels.h"

namespace halftone::kernels {
namespace {

const char* take_all(const SoftmaxProblem&) {
  return nullptr;
}

constexpr SoftmaxKernel kTable[] = {
#if defined(HALFTONE_X86)
    {"softmax_f32_1x8_avx2", Isa::kAvx2, take_all, softmax_row_avx2},
#endif
    {"softmax_f32_1x1_scalar", Isa::kScalar, take_all, softmax_row_scalar},
};

constexpr int64_t kElementsPerTask = 4096;  // a few microseconds

}  // namespace

std::span<const SoftmaxKernel> softmax_kernels() {
  return kTable;
}

void softmax(const SoftmaxKernel& kernel, const SoftmaxProblem& p, const SoftmaxArgs& args,
             ParallelFor& parallel_for) {
  if (p.rows < 0 || p.k < 0) fail(ErrorCode::kInvalidArgument, "softmax: negative size {} x {}", p.rows, p.k);
  if (p.k == 0) return;
  const int64_t per_task = kElementsPerTask / p.k + 1;
  parallel_for.run((p.rows + per_task - 1) / per_task, [&](int64_t task, int) {
    for (int64_t r = task * per_task; r < p.rows && r < (task + 1) * per_task; ++r) {
      const float* mask = args.mask != nullptr ? args.mask + r * args.mask_stride : nullptr;
      kernel.row(args.x + r * args.x_stride, mask, args.scale, p.k, args.y + r * args.y_stride);
    }
  });
}

}  // namespace halftone::kernels
