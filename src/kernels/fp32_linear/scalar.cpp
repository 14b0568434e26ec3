// fp32_linear in plain C++.
#include "kernels/common/scalar_epilogue.h"
#include "kernels/fp32_linear/kernels.h"

namespace halftone::kernels {
namespace {

constexpr int kPanel = 16;

}  // namespace

void fp32_pack_rows_scalar(const float* x, int64_t stride, int count, int64_t k, float* packed) {
  for (int64_t i = 0; i < k; ++i) {
    for (int r = 0; r < count; ++r) packed[i * count + r] = x[r * stride + i];
  }
}

void fp32_multiply_scalar(const Fp32LinearStep& s) {
  for (int p = 0; p < s.panels; ++p) {
    const float* panel = s.panel + p * s.panel_stride;
    for (int r = 0; r < s.count; ++r) {
      float row[kPanel] = {};
      for (int64_t i = 0; i < s.k; ++i) {
        const float x = s.rows[i * s.count + r];
        for (int c = 0; c < kPanel; ++c) row[c] += x * panel[i * kPanel + c];
      }
      float* sums = s.sums + (p * s.count + r) * kPanel;
      for (int c = 0; c < kPanel; ++c) sums[c] = s.add ? sums[c] + row[c] : row[c];
    }
  }
}

void fp32_finish_scalar(const Fp32LinearTile& t) {
  for (int r = 0; r < t.rows; ++r) {
    for (int c = 0; c < t.columns; ++c) finish1(t.sums[r * kPanel + c], *t.epilogue, t.row + r, t.column + c);
  }
}

}  // namespace halftone::kernels
