// fp32_linear in plain C++.
#include "kernels/common/scalar_epilogue.h"
#include "kernels/fp32_linear/kernels.h"
#include "kernels/fp32_linear/scalar_multiply.h"

namespace halftone::kernels {
void fp32_pack_rows_scalar(const float* x, int64_t stride, int count, int64_t k, float* packed) {
  for (int64_t i = 0; i < k; ++i) {
    for (int r = 0; r < count; ++r) packed[i * count + r] = x[r * stride + i];
  }
}

void fp32_multiply_scalar(const Fp32LinearStep& s) {
  multiply_scalar(
      s, [](const unsigned char* panel, int64_t at) { return reinterpret_cast<const float*>(panel)[at]; });
}

void fp32_finish_scalar(const Fp32LinearTile& t) {
  for (int r = 0; r < t.rows; ++r) {
    for (int c = 0; c < t.columns; ++c)
      finish1(t.sums[r * kScalarPanel + c], *t.epilogue, t.row + r, t.column + c);
  }
}

}  // namespace halftone::kernels
