// Packing of bf16_linear's weights: the panels of packed_block.h, without factors. The columns of one k are
// in pairs: 32-bit lane i has column i in its lower half and column tile_n / 2 + i in its upper one. Shifted
// up the lane is the one as a float, masked it is the other; no shuffle is needed.
#pragma once

#include "kernels/common/packed_block.h"

namespace halftone::kernels {

inline constexpr uint32_t kBf16PackVersion = 1;

/// Plain weights, borrowed: [n][stride] bfloat16 bits.
struct Bf16Weights {
  const uint16_t* w = nullptr;
  int64_t stride = 0;
  int64_t n = 0;
  int64_t k = 0;
};

/// Throws kInvalidArgument for negative sizes and for sizes whose bytes overflow.
size_t bf16_packed_bytes(int64_t n, int64_t k, int tile_n);

/// Writes the packed block to `out`, bf16_packed_bytes long and aligned to kPackedAlignment.
void pack_bf16_weights(const Bf16Weights& weights, int tile_n, void* out);

/// Throws kInvalidArgument unless `block` is an aligned packed block of this version and tile.
PackedPanels open_bf16_packed(const void* block, int tile_n);

/// Throws kInvalidArgument unless `block`, bf16_packed_bytes long, is what packing would make, as far as
/// packed_block.h says. `last`: the channels of the last panel of n.
void check_bf16_packed(const Bf16Weights& last, int64_t n, int tile_n, const void* block);

}  // namespace halftone::kernels
