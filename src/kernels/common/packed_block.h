// The front of a block of packed weights, the same for every operation that packs by panels of columns, and
// the one way to check it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace halftone::kernels {

inline constexpr size_t kPackedAlignment = 64;

/// At the front of a packed block. A packed block belongs to the machine that made it; checkpoints hold plain
/// integers and scales.
struct PackedHeader {
  char magic[8];  ///< says whose layout follows
  uint32_t version;
  uint32_t tile_n;           ///< columns of a panel
  uint32_t group;            ///< neighbouring k that share a scale; 0 where an operation has no groups
  uint32_t has_zero_points;  ///< 0 or 1
  int64_t n;
  int64_t k;
  uint8_t padding[24];
};
static_assert(sizeof(PackedHeader) == 64);

/// Whose blocks: the operation's name for messages, its magic and its version.
struct PackedKind {
  const char* operation;
  char magic[8];
  uint32_t version;
};

/// Columns [0, n) in panels of tile_n.
constexpr int64_t packed_panel_count(int64_t n, int tile_n) {
  return n / tile_n + (n % tile_n != 0);
}

/// Clears `bytes` at `out` and writes the header: magic and version from `kind`, the rest from `header`.
/// Throws kInvalidArgument for an `out` that is not aligned.
void begin_packed(const PackedKind& kind, PackedHeader header, void* out, size_t bytes);

/// Throws kInvalidArgument unless `block` is an aligned block of this kind and tile.
const PackedHeader& open_packed(const PackedKind& kind, const void* block, int tile_n);

/// Throws kInvalidArgument for a scale that is negative, infinite or NaN, naming the channel (and the group,
/// if it is not negative).
void check_packed_scale(const PackedKind& kind, float scale, int64_t channel, int64_t group = -1);

/// panels * tile_n * k, or kInvalidArgument for negative sizes and for products past 2^61.
int64_t packed_weight_count(const PackedKind& kind, int64_t n, int64_t k, int tile_n);

}  // namespace halftone::kernels
