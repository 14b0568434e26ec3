// Packing of fp8_linear's weights: the panels of packed_block.h. Their format is the Float8Format, their
// elements are the bytes of the weights, and a factor belongs to the byte read as the upper bits of a
// half-precision number: for e5m2 that is its value and the factor is the scale; for e4m3fn (one exponent bit
// less) it is its value / 256 and the factor is 256 scales.
#pragma once

#include "kernels/common/packed_block.h"
#include "kernels/fp8_linear/float8.h"

namespace halftone::kernels {

inline constexpr uint32_t kFp8PackVersion = 2;

/// Plain weights, borrowed: w [n][stride] bytes; scale [n] with scale_stride 1, or one scale for all with 0.
struct Fp8Weights {
  const uint8_t* w = nullptr;
  int64_t stride = 0;
  const float* scale = nullptr;
  int64_t scale_stride = 1;
  int64_t n = 0;
  int64_t k = 0;
  Float8Format format = Float8Format::kE4m3fn;
};

/// Throws kInvalidArgument for negative sizes and for sizes whose bytes overflow.
size_t fp8_packed_bytes(int64_t n, int64_t k, int tile_n);

/// Writes the packed block to `out`, aligned to 64. Throws kInvalidArgument, naming the channel, for a scale
/// that is negative, NaN or so large that a weight could overflow, and for a weight that is NaN or infinite.
void pack_fp8_weights(const Fp8Weights& weights, int tile_n, void* out);

/// The format is a Float8Format. Throws kInvalidArgument unless `block` is an aligned packed block of this
/// version and tile.
PackedPanels open_fp8_packed(const void* block, int tile_n);

/// Throws kInvalidArgument unless `block`, fp8_packed_bytes long, is what packing would make, as far as
/// packed_block.h says. `last`: the channels of the last panel of n.
void check_fp8_packed(const Fp8Weights& last, int64_t n, int tile_n, const void* block);

}  // namespace halftone::kernels
