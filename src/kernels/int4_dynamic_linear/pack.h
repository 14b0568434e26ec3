// Packing of int4_dynamic_linear's weights: a header, then panels of tile_n columns; a panel is one chunk for
// each group, in order, so that a panel is read as one stream:
//   tile_n scales (float) · only with zero points: tile_n of them (s8, padded to 32 bytes; or float) ·
//   for each 32 k of the group, for v in 0..3, for each column c: four bytes; byte i holds qw + 8 of
//   k = 8 v + i in its low and of k = 8 v + 4 + i in its high half.
// Zero beyond n; whole groups, filled up with weights of zero. Four k of a column are neighbours because that
// is what byte multiply-adds sum.
#pragma once

#include "kernels/common/int4_weights.h"

namespace halftone::kernels {

inline constexpr int kInt4DynamicBlock = 32;  ///< activations that share a scale

/// Throws kInvalidArgument for sizes or groups that cannot be packed.
size_t int4_dynamic_packed_bytes(int64_t n, int64_t k, int group, Int4ZeroPoints zero_points, int tile_n);

/// Writes the packed block to `out`, aligned to 64. Throws as check_int4_channel() does.
void pack_int4_dynamic(const Int4Weights& weights, int tile_n, void* out);

/// A packed block taken apart.
struct Int4DynamicPacked {
  int64_t n;
  int64_t inputs;  ///< of the weights that were packed
  int64_t k;       ///< those filled up to whole groups: what kernels multiply
  int group;
  Int4ZeroPoints zero_points;
  int64_t panel_count;
  const uint8_t* panels;  ///< panel_bytes apart
  int64_t panel_bytes;
  int64_t chunk_bytes;  ///< of one group of one panel
  int64_t zero_offset;  ///< zero points in a chunk
  int64_t data_offset;  ///< weights in a chunk
};

/// Throws kInvalidArgument unless `block` is an aligned packed block of this version and tile.
Int4DynamicPacked open_int4_dynamic(const void* block, int tile_n);

/// Throws kInvalidArgument unless `block`, int4_dynamic_packed_bytes long, is what packing would make, as far
/// as packed_block.h says. `last`: the channels of the last panel of n.
void check_int4_dynamic_packed(const Int4Weights& last, int64_t n, int tile_n, const void* block);

}  // namespace halftone::kernels
