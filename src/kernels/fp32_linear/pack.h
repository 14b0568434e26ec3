// Packing of fp32_linear's weights: made once, read by every call. The panels of packed_block.h, without
// factors.
#pragma once

#include "kernels/common/packed_block.h"

namespace halftone::kernels {

inline constexpr uint32_t kFp32PackVersion = 2;

/// Plain weights, borrowed: [n][stride].
struct Fp32Weights {
  const float* w = nullptr;
  int64_t stride = 0;
  int64_t n = 0;
  int64_t k = 0;
};

/// Throws kInvalidArgument for negative sizes and for sizes whose bytes overflow.
size_t fp32_packed_bytes(int64_t n, int64_t k, int tile_n);

/// Writes the packed block to `out`, fp32_packed_bytes long and aligned to kPackedAlignment.
void pack_fp32_weights(const Fp32Weights& weights, int tile_n, void* out);

/// The elements are floats. Throws kInvalidArgument unless `block` is an aligned packed block of this version
/// and tile.
PackedPanels open_fp32_packed(const void* block, int tile_n);

/// Throws kInvalidArgument unless `block`, fp32_packed_bytes long, is what packing would make, as far as
/// packed_block.h says. `last`: the channels of the last panel of n.
void check_fp32_packed(const Fp32Weights& last, int64_t n, int tile_n, const void* block);

}  // namespace halftone::kernels
