// int4_weight_only_linear in plain C++, for every machine: the reference of the other kernels.
#include "kernels/int4_weight_only_linear/kernels.h"

namespace halftone::kernels {

void int4_expand_scalar(const void* packed, int64_t panel, int64_t k, int64_t steps, float* out) {
  const auto& p = *static_cast<const Int4WeightOnlyPacked*>(packed);
  const int64_t groups = p.k / p.group;
  for (int64_t i = 0; i < steps; ++i) {
    const uint32_t* lanes = p.panels + (panel * (p.k / 8) + (k + i) / 8) * p.tile_n;
    const int64_t table = (panel * groups + (k + i) / p.group) * p.tile_n;
    for (int c = 0; c < p.tile_n; ++c) {
      const uint32_t q = lanes[c] >> ((k + i) % 8 * 4) & 15;
      const float zero = p.zero_point != nullptr ? p.zero_point[table + c] : 8.0f;
      out[i * p.tile_n + c] = (static_cast<float>(q) - zero) * p.scale[table + c];
    }
  }
}

}  // namespace halftone::kernels
