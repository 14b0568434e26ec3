// int8_linear in plain C++: the meaning of the packed layouts, and the kernel of machines that nothing else
// knows.
#include <algorithm>
#include <cstring>

#include "kernels/common/scalar_epilogue.h"
#include "kernels/int8_linear/kernels.h"

namespace halftone::kernels {
namespace {

constexpr int kPanel = 16;

// One row: raw sums of 16 columns. Unsigned, because sums in between may wrap.
void multiply_row(const Int8LinearBlock& b, int row, uint32_t (&raw)[kPanel]) {
  std::fill(std::begin(raw), std::end(raw), 0u);
  const uint8_t* x = b.rows + row * 4;
  const int8_t* w = b.panel;
  for (int64_t quad = 0; quad < b.quads; ++quad, x += b.count * 4, w += kPanel * 4) {
    for (int c = 0; c < kPanel; ++c) {
      int32_t sum = 0;
      for (int i = 0; i < 4; ++i) sum += int32_t{x[i]} * w[c * 4 + i];
      raw[c] += static_cast<uint32_t>(sum);
    }
  }
}

}  // namespace

void int8_pack_rows_scalar(const uint8_t* q, int64_t stride, int count, int64_t k, uint8_t flip,
                           uint8_t* packed, int32_t* row_add) {
  const int64_t quads = (k + 3) / 4;
  for (int r = 0; r < count; ++r) {
    for (int64_t i = 0; i < quads * 4; ++i) {
      packed[(i / 4 * count + r) * 4 + i % 4] =
          i < k ? static_cast<uint8_t>(q[r * stride + i] ^ flip) : uint8_t{0};
    }
    row_add[r] = 0;
  }
}

void int8_compute_scalar(const Int8LinearBlock& block) {
  Int8LinearBlock b = block;
  for (int first = 0; first < block.columns; first += kPanel, b.panel += b.panel_bytes) {
    for (int r = 0; r < b.count; ++r) {
      uint32_t raw[kPanel];
      multiply_row(b, r, raw);
      for (int i = 0; i < kPanel && first + i < b.columns; ++i) {
        const int c = first + i;
        const uint32_t zero = static_cast<uint32_t>(b.row_mul[r]) * static_cast<uint32_t>(b.column_sum[c]);
        const auto a = static_cast<int32_t>(raw[i] + static_cast<uint32_t>(b.row_add[r]) + zero);
        if (b.sums != nullptr) {
          b.sums[(b.row + r) * b.sums_stride + b.column + c] = a;
        } else {
          finish1(static_cast<float>(a) * (b.row_scale[r] * b.column_scale[c]), *b.epilogue, b.row + r,
                  b.column + c);
        }
      }
    }
  }
}

}  // namespace halftone::kernels
