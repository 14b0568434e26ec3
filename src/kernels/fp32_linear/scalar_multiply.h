// The multiplication of fp32_linear and bf16_linear in plain C++.
#pragma once

#include "kernels/fp32_linear/fp32_linear.h"

namespace halftone::kernels {

inline constexpr int kScalarPanel = 16;

/// `weight(panel, i)` is the i-th element of a panel as a float.
template <typename Weight>
void multiply_scalar(const Fp32LinearStep& s, Weight weight) {
  for (int p = 0; p < s.panels; ++p) {
    const auto* panel = static_cast<const unsigned char*>(s.panel) + p * s.panel_stride;
    for (int r = 0; r < s.count; ++r) {
      float row[kScalarPanel] = {};
      for (int64_t i = 0; i < s.k; ++i) {
        const float x = s.rows[i * s.count + r];
        for (int c = 0; c < kScalarPanel; ++c) row[c] += x * weight(panel, i * kScalarPanel + c);
      }
      float* sums = s.sums + (p * s.count + r) * kScalarPanel;
      for (int c = 0; c < kScalarPanel; ++c) sums[c] = s.add ? sums[c] + row[c] : row[c];
    }
  }
}

}  // namespace halftone::kernels
