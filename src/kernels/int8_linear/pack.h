// Packing of int8_linear's weights: made once, read by every call.
//
// A packed block is a header (packed_block.h), then for each column (padded to whole panels) its scale and
// its sum Σ_k qw, then the panels:
//   panel p, quad q, column c, i in 0..3  ->  qw[p * tile.n + c][4 q + i], zero beyond n and k.
// Four k of one column are neighbours because every x86 multiply-add of bytes sums four (or two and two)
// neighbours. A packed block belongs to the machine that made it; checkpoints hold the plain integers and
// scales.
#pragma once

#include "kernels/common/packed_block.h"

namespace halftone::kernels {

/// Columns of a panel, and the k that are neighbours in it.
struct Int8Tile {
  int n = 16;
  int k = 4;
  friend bool operator==(const Int8Tile&, const Int8Tile&) = default;
};

inline constexpr uint32_t kInt8PackVersion = 2;

/// Plain weights, borrowed: w [n][stride] of s8, scale [n].
struct Int8Weights {
  const int8_t* w = nullptr;
  int64_t stride = 0;
  const float* scale = nullptr;
  int64_t n = 0;
  int64_t k = 0;
  int weight_bits = 8;
};

/// Bytes of the packed block. Throws kInvalidArgument for sizes that int8_linear cannot take.
size_t int8_packed_bytes(int64_t n, int64_t k, Int8Tile tile);

/// Writes the packed block to `out`, int8_packed_bytes long and aligned to kPackedAlignment. Throws
/// kInvalidArgument for a weight outside weight_bits and for a scale that is negative, infinite or NaN,
/// naming the channel. A scale of 0 is a channel of zeros.
void pack_int8_weights(const Int8Weights& weights, Int8Tile tile, void* out);

/// A packed block taken apart. Pointers into the block.
struct Int8Packed {
  const PackedHeader* header;  ///< its format is weight_bits
  const float* scale;          ///< [panels * tile_n]
  const int32_t* sum;          ///< [panels * tile_n]
  const int8_t* panels;        ///< panel_bytes apart
  int64_t panel_count;
  int64_t panel_bytes;
};

/// Throws kInvalidArgument unless `block` is an aligned packed block of this version and tile.
Int8Packed open_int8_packed(const void* block, Int8Tile tile);

/// Throws kInvalidArgument unless `block`, int8_packed_bytes long, is what packing would make, as far as
/// packed_block.h says. `last`: the channels of the last panel of n.
void check_int8_packed(const Int8Weights& last, int64_t n, Int8Tile tile, const void* block);

}  // namespace halftone::kernels
