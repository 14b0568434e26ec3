// Packing of int8_weight_only_linear's weights: a header, the scales (padded to whole panels), then the
// panels:
//   panel p, k, column c  ->  qw[p * tile_n + c][k], zero beyond n. Nothing is padded along k.
#pragma once

#include <cstddef>
#include <cstdint>

namespace halftone::kernels {

inline constexpr uint32_t kInt8WeightOnlyPackVersion = 1;
inline constexpr size_t kInt8WeightOnlyAlignment = 64;

/// At the front of every packed block.
struct Int8WeightOnlyHeader {
  char magic[8];  ///< "htint8o"
  uint32_t version;
  uint32_t tile_n;
  int64_t n;
  int64_t k;
  uint8_t padding[32];
};
static_assert(sizeof(Int8WeightOnlyHeader) == 64);

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

/// A packed block taken apart.
struct Int8WeightOnlyPacked {
  int64_t n;
  int64_t k;
  int tile_n;
  int64_t panel_count;
  const float* scale;    ///< [panel_count * tile_n]
  const int8_t* panels;  ///< k * tile_n bytes each
};

/// Throws kInvalidArgument unless `block` is an aligned packed block of this version and tile.
Int8WeightOnlyPacked open_int8_weight_only(const void* block, int tile_n);

}  // namespace halftone::kernels
