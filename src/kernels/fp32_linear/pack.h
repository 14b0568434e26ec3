// Packing of fp32_linear's weights: made once, read by every call.
//
// A packed block is a header, then the panels: panel p, k, column c  ->  w[p * tile_n + c][k], zero beyond n.
// Nothing is padded along k. A packed block belongs to the machine that made it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace halftone::kernels {

inline constexpr uint32_t kFp32PackVersion = 1;
inline constexpr size_t kFp32PackAlignment = 64;

/// At the front of every packed block.
struct Fp32PackHeader {
  char magic[8];  ///< "htfp32w"
  uint32_t version;
  uint32_t tile_n;
  int64_t n;
  int64_t k;
  uint8_t padding[32];
};
static_assert(sizeof(Fp32PackHeader) == 64);

/// Plain weights, borrowed: [n][stride].
struct Fp32Weights {
  const float* w = nullptr;
  int64_t stride = 0;
  int64_t n = 0;
  int64_t k = 0;
};

/// Throws kInvalidArgument for negative sizes and for sizes whose bytes overflow.
size_t fp32_packed_bytes(int64_t n, int64_t k, int tile_n);

/// Writes the packed block to `out`, fp32_packed_bytes long and aligned to kFp32PackAlignment.
void pack_fp32_weights(const Fp32Weights& weights, int tile_n, void* out);

/// A packed block taken apart.
struct Fp32Packed {
  const Fp32PackHeader* header;
  const float* panels;  ///< k * tile_n floats each
  int64_t panel_count;
};

/// Throws kInvalidArgument unless `block` is an aligned packed block of this version and tile.
Fp32Packed open_fp32_packed(const void* block, int tile_n);

}  // namespace halftone::kernels
