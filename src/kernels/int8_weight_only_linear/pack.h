// Packing of int8_weight_only_linear's weights: the panels of packed_block.h, whose elements are the s8 and
// whose factors are the scales.
#pragma once

#include "kernels/common/packed_block.h"

namespace halftone::kernels {

inline constexpr uint32_t kInt8WeightOnlyPackVersion = 2;

/// Plain weights, borrowed: w [n][stride], scale [n].
struct Int8WeightOnlyWeights {
  const int8_t* w = nullptr;
  int64_t stride = 0;
  const float* scale = nullptr;
  int64_t n = 0;
  int64_t k = 0;
};

/// Throws kInvalidArgument for negative sizes and for sizes whose bytes overflow.
size_t int8_weight_only_packed_bytes(int64_t n, int64_t k, int tile_n);

/// Writes the packed block to `out`, aligned to 64. Throws kInvalidArgument for a scale that is negative,
/// infinite or NaN.
void pack_int8_weight_only(const Int8WeightOnlyWeights& weights, int tile_n, void* out);

/// Throws kInvalidArgument unless `block` is an aligned packed block of this version and tile.
PackedPanels open_int8_weight_only(const void* block, int tile_n);

/// Throws kInvalidArgument unless `block`, int8_weight_only_packed_bytes long, is what packing would make, as
/// far as packed_block.h says. `last`: the channels of the last panel of n.
void check_int8_weight_only_packed(const Int8WeightOnlyWeights& last, int64_t n, int tile_n,
                                   const void* block);

}  // namespace halftone::kernels
