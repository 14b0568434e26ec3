#include "kernels/int4_weight_only_linear/kernels.h"

namespace halftone::kernels {

void int4_expand_scalar(const void* packed, int64_t panel, int64_t k, int64_t steps, float* out) {
  const auto& p = *static_cast<const Int4WeightOnlyPacked*>(packed);
  const int64_t groups = p.k / p.group;
  for (int64_t i = 0; i < steps; ++i) {
    const uint8_t* bytes = p.panels + (panel * p.k + k + i) * p.tile_n / 2;
    const int64_t table = (panel * groups + (k + i) / p.group) * p.tile_n;
    for (int c = 0; c < p.tile_n; ++c) {
      const uint8_t byte = bytes[c / 16 * 8 + c % 8];
      const auto sixteenfold = static_cast<int8_t>(c % 16 < 8 ? byte << 4 : byte & 0xf0);
      const float zero = p.zero_point != nullptr ? p.zero_point[table + c] : 0.0f;
      out[i * p.tile_n + c] = (static_cast<float>(sixteenfold) - zero) * p.scale[table + c];
    }
  }
}

}  // namespace halftone::kernels
