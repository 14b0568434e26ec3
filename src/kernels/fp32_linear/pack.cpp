#include "kernels/fp32_linear/pack.h"

namespace halftone::kernels {
namespace {

constexpr PanelKind kKind{{"fp32_linear", "htfp32w", kFp32PackVersion}, sizeof(float), false};

}  // namespace

size_t fp32_packed_bytes(int64_t n, int64_t k, int tile_n) {
  return packed_panels_bytes(kKind, n, k, tile_n);
}

void pack_fp32_weights(const Fp32Weights& weights, int tile_n, void* out) {
  const PackedPanels packed = begin_packed_panels(kKind, weights.n, weights.k, tile_n, 0, out);
  for (int64_t c = 0; c < weights.n; ++c) {
    float* column = packed_column<float>(packed, c);
    for (int64_t k = 0; k < weights.k; ++k) column[k * tile_n] = weights.w[c * weights.stride + k];
  }
}

PackedPanels open_fp32_packed(const void* block, int tile_n) {
  return open_packed_panels(kKind, block, tile_n);
}

void check_fp32_packed(const Fp32Weights& last, int64_t n, int tile_n, const void* block) {
  PackedPanels wanted{};
  wanted.n = n;
  wanted.k = last.k;
  wanted.tile_n = tile_n;
  wanted.format = 0;
  check_packed_panels(kKind, wanted, block, [&](void* out) { pack_fp32_weights(last, tile_n, out); });
}

}  // namespace halftone::kernels
