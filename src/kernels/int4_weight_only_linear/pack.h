// Packing of int4_weight_only_linear's weights: a header; for each panel and group the scales of its columns,
// and the zero points plus 8 if there are any; then the panels:
//   panel p, eight steps of k, column c: 32 bits that hold qw + 8 of the eight k, the first lowest.
// k is filled up to whole groups with weights of zero. Masked with 15 · 16^j such a lane is the j-th weight
// times 16^j, as an integer: no shift; x / 16^j takes the factor away exactly.
#pragma once

#include "kernels/common/int4_weights.h"

namespace halftone::kernels {

using Int4WeightOnlyWeights = Int4Weights;

/// Throws kInvalidArgument for sizes or groups that cannot be packed.
size_t int4_weight_only_packed_bytes(int64_t n, int64_t k, int group, Int4ZeroPoints zero_points, int tile_n);

/// Writes the packed block to `out`, aligned to 64. Throws as check_int4_channel() does.
void pack_int4_weight_only(const Int4WeightOnlyWeights& weights, int tile_n, void* out);

/// A packed block taken apart.
struct Int4WeightOnlyPacked {
  int64_t n;
  int64_t inputs;  ///< of the weights that were packed
  int64_t k;       ///< those filled up to whole groups: what kernels multiply
  int group;
  int tile_n;
  int64_t panel_count;
  const float* scale;       ///< [panel][k / group][tile_n]
  const float* zero_point;  ///< the same, plus 8; nullptr if all are 0 (8)
  const uint32_t* panels;   ///< k / 8 * tile_n lanes each
};

/// Throws kInvalidArgument unless `block` is an aligned packed block of this version and tile.
Int4WeightOnlyPacked open_int4_weight_only(const void* block, int tile_n);

/// Throws kInvalidArgument unless `block`, int4_weight_only_packed_bytes long, is what packing would make, as
/// far as packed_block.h says. `last`: the channels of the last panel of n.
void check_int4_weight_only_packed(const Int4Weights& last, int64_t n, int tile_n, const void* block);

}  // namespace halftone::kernels
