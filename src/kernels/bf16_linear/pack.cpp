#include "kernels/bf16_linear/pack.h"

namespace halftone::kernels {
namespace {

constexpr PanelKind kKind{{"bf16_linear", "htbf16w", kBf16PackVersion}, sizeof(uint16_t), false};

// Where a column stands among the tile_n elements of one k.
int64_t place(int64_t column, int tile_n) {
  const int64_t half = tile_n / 2;
  return column < half ? 2 * column : 2 * (column - half) + 1;
}

}  // namespace

size_t bf16_packed_bytes(int64_t n, int64_t k, int tile_n) {
  return packed_panels_bytes(kKind, n, k, tile_n);
}

void pack_bf16_weights(const Bf16Weights& weights, int tile_n, void* out) {
  const PackedPanels packed = begin_packed_panels(kKind, weights.n, weights.k, tile_n, 0, out);
  for (int64_t c = 0; c < weights.n; ++c) {
    auto* column = packed_column<uint16_t>(packed, c / tile_n * tile_n + place(c % tile_n, tile_n));
    for (int64_t k = 0; k < weights.k; ++k) column[k * tile_n] = weights.w[c * weights.stride + k];
  }
}

PackedPanels open_bf16_packed(const void* block, int tile_n) {
  return open_packed_panels(kKind, block, tile_n);
}

void check_bf16_packed(const Bf16Weights& last, int64_t n, int tile_n, const void* block) {
  PackedPanels wanted{};
  wanted.n = n;
  wanted.k = last.k;
  wanted.tile_n = tile_n;
  wanted.format = 0;
  check_packed_panels(kKind, wanted, block, [&](void* out) { pack_bf16_weights(last, tile_n, out); });
}

}  // namespace halftone::kernels
