// int8_weight_only_linear in plain C++, for every machine: the reference of the other kernels.
#include "kernels/int8_weight_only_linear/kernels.h"

namespace halftone::kernels {

void int8_expand_scalar(const void* packed, int64_t panel, int64_t k, int64_t steps, float* out) {
  const auto& p = *static_cast<const PackedPanels*>(packed);
  const auto* q = reinterpret_cast<const int8_t*>(p.elements + panel * p.panel_bytes + k * p.tile_n);
  const float* scale = p.factor + panel * p.tile_n;
  for (int64_t i = 0; i < steps; ++i) {
    for (int c = 0; c < p.tile_n; ++c)
      out[i * p.tile_n + c] = static_cast<float>(q[i * p.tile_n + c]) * scale[c];
  }
}

}  // namespace halftone::kernels
