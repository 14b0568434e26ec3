#include "kernels/int8_weight_only_linear/pack.h"

namespace halftone::kernels {
namespace {

constexpr PanelKind kKind{{"int8_weight_only_linear", "htint8o", kInt8WeightOnlyPackVersion}, 1, true};

}  // namespace

size_t int8_weight_only_packed_bytes(int64_t n, int64_t k, int tile_n) {
  return packed_panels_bytes(kKind, n, k, tile_n);
}

void pack_int8_weight_only(const Int8WeightOnlyWeights& weights, int tile_n, void* out) {
  const PackedPanels packed = begin_packed_panels(kKind, weights.n, weights.k, tile_n, 0, out);
  for (int64_t c = 0; c < weights.n; ++c) {
    check_packed_scale(kKind.kind, weights.scale[c], c);
    const_cast<float*>(packed.factor)[c] = weights.scale[c];
    auto* column = packed_column<int8_t>(packed, c);
    for (int64_t k = 0; k < weights.k; ++k) column[k * tile_n] = weights.w[c * weights.stride + k];
  }
}

PackedPanels open_int8_weight_only(const void* block, int tile_n) {
  return open_packed_panels(kKind, block, tile_n);
}

void check_int8_weight_only_packed(const Int8WeightOnlyWeights& last, int64_t n, int tile_n,
                                   const void* block) {
  PackedPanels wanted{};
  wanted.n = n;
  wanted.k = last.k;
  wanted.tile_n = tile_n;
  wanted.format = 0;
  check_packed_panels(kKind, wanted, block, [&](void* out) { pack_int8_weight_only(last, tile_n, out); });
}

}  // namespace halftone::kernels
