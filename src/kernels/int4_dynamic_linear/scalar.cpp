// int4_dynamic_linear in plain C++: the meaning of the packed layouts.
#include <cmath>
#include <cstring>

#include "kernels/int4_dynamic_linear/kernels.h"
#include "kernels/quantize_rows/kernels.h"

namespace halftone::kernels {
namespace {

constexpr int kPanel = 16;

float zero_of(const Int4DynamicPacked& w, const uint8_t* chunk, int column) {
  if (w.zero_points == Int4ZeroPoints::kNone) return 0;
  const uint8_t* zeros = chunk + w.zero_offset;
  if (w.zero_points == Int4ZeroPoints::kFloats) return reinterpret_cast<const float*>(zeros)[column];
  return static_cast<int8_t>(zeros[column]);
}

// Σ qx · qw of 32 k for one column.
int32_t dot(const int8_t* x, int count, const uint8_t* data) {
  int32_t sum = 0;
  for (int v = 0; v < 4; ++v, data += kPanel * 4) {
    for (int i = 0; i < 4; ++i) {
      sum += x[2 * v * count * 4 + i] * ((data[i] & 15) - 8);
      sum += x[(2 * v + 1) * count * 4 + i] * ((data[i] >> 4) - 8);
    }
  }
  return sum;
}

// One row times one panel, all of k.
void multiply_row(const Int4DynamicStep& s, const uint8_t* panel, int row, float* sums) {
  const Int4DynamicPacked& w = *s.weights;
  for (int c = 0; c < kPanel; ++c) sums[c] = 0.0f;
  const uint8_t* record = s.rows;
  for (int64_t k = 0; k < w.k; k += kInt4DynamicBlock, record += s.count * kInt4DynamicRowBytes) {
    const uint8_t* chunk = panel + k / w.group * w.chunk_bytes;
    const uint8_t* data = chunk + w.data_offset + k % w.group * kPanel / 2;
    float scale;
    int32_t sum_x;
    std::memcpy(&sum_x, record + s.count * 36 + row * 4, sizeof(sum_x));
    std::memcpy(&scale, record + s.count * 40 + row * 4, sizeof(scale));
    for (int c = 0; c < kPanel; ++c) {
      const int32_t a = dot(reinterpret_cast<const int8_t*>(record) + row * 4, s.count, data + c * 4);
      const float counted = std::fma(-zero_of(w, chunk, c), static_cast<float>(sum_x), static_cast<float>(a));
      sums[c] = std::fma(counted, scale * reinterpret_cast<const float*>(chunk)[c], sums[c]);
    }
  }
}

}  // namespace

void int4_dynamic_prepare_scalar(const float* x, int64_t k, int row, int count, uint8_t* record) {
  for (; k > 0; k -= kInt4DynamicBlock, x += kInt4DynamicBlock, record += count * kInt4DynamicRowBytes) {
    int8_t q[kInt4DynamicBlock];
    const RowScale s =
        quantize_row_scalar(x, kInt4DynamicBlock, RowFormat::kS8, reinterpret_cast<uint8_t*>(q));
    int32_t pairs[2] = {0, 0};
    for (int i = 0; i < kInt4DynamicBlock; ++i) pairs[i / 2 % 2] += q[i];
    for (int quad = 0; quad < 8; ++quad) std::memcpy(record + (quad * count + row) * 4, q + quad * 4, 4);
    const int16_t start[2] = {static_cast<int16_t>(-8 * pairs[0]), static_cast<int16_t>(-8 * pairs[1])};
    const int32_t sum = pairs[0] + pairs[1];
    std::memcpy(record + count * 32 + row * 4, start, 4);
    std::memcpy(record + count * 36 + row * 4, &sum, 4);
    std::memcpy(record + count * 40 + row * 4, &s.scale, 4);
  }
}

void int4_dynamic_multiply_scalar(const Int4DynamicStep& s) {
  for (int p = 0; p < s.panels; ++p) {
    const uint8_t* panel = s.weights->panels + (s.panel + p) * s.weights->panel_bytes;
    for (int r = 0; r < s.count; ++r) multiply_row(s, panel, r, s.sums + (p * s.count + r) * kPanel);
  }
}

}  // namespace halftone::kernels
