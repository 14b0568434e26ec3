#include "kernels/elementwise/elementwise.h"

#include <algorithm>

#include "base/errors.h"
#include "kernels/elementwise/kernels.h"

namespace halftone::kernels {
namespace {

const char* take_all(const ElementwiseProblem&) {
  return nullptr;
}

constexpr ElementwiseKernel kTable[] = {
#if defined(HALFTONE_X86)
    {"elementwise_f32_8_avx2", Isa::kAvx2, take_all, activate_avx2, add_avx2, mul_avx2},
#endif
    {"elementwise_f32_1_scalar", Isa::kScalar, take_all, activate_scalar, add_scalar, mul_scalar},
};

constexpr int64_t kPiece = 16384;  // 64 KB: a few microseconds

void split(int64_t count, ParallelFor& parallel_for, SplitTask piece) {
  if (count < 0) fail(ErrorCode::kInvalidArgument, "elementwise: negative count {}", count);
  parallel_for.run((count + kPiece - 1) / kPiece, piece);
}

}  // namespace

std::span<const ElementwiseKernel> elementwise_kernels() {
  return kTable;
}

void activate_all(const ElementwiseKernel& kernel, const float* x, float* y, int64_t count,
                  Activation activation, ParallelFor& parallel_for) {
  split(count, parallel_for, [&](int64_t i, int) {
    kernel.activate(x + i * kPiece, y + i * kPiece, std::min(kPiece, count - i * kPiece), activation);
  });
}

void add_all(const ElementwiseKernel& kernel, const float* a, const float* b, float* y, int64_t count,
             ParallelFor& parallel_for) {
  split(count, parallel_for, [&](int64_t i, int) {
    kernel.add(a + i * kPiece, b + i * kPiece, y + i * kPiece, std::min(kPiece, count - i * kPiece));
  });
}

void mul_all(const ElementwiseKernel& kernel, const float* a, const float* b, float* y, int64_t count,
             ParallelFor& parallel_for) {
  split(count, parallel_for, [&](int64_t i, int) {
    kernel.mul(a + i * kPiece, b + i * kPiece, y + i * kPiece, std::min(kPiece, count - i * kPiece));
  });
}

}  // namespace halftone::kernels
