// The front of a block of packed weights, the same for every operation that packs by panels of columns, and
// the one way to check it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace halftone::kernels {

inline constexpr size_t kPackedAlignment = 64;

/// At the front of a packed block. A packed block belongs to the machine that made it; checkpoints hold plain
/// integers and scales.
struct PackedHeader {
  char magic[8];  ///< says whose layout follows
  uint32_t version;
  uint32_t tile_n;           ///< columns of a panel
  uint32_t group;            ///< neighbouring k that share a scale; 0 if an operation has no groups
  uint32_t has_zero_points;  ///< 0 or 1
  int64_t n;
  int64_t k;
  uint32_t format;  ///< the operation's own, such as a Float8Format or a number of bits
  uint32_t tile_k;  ///< k that are neighbours in a panel; 0 if the layout says it all
  uint8_t padding[16];
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

/// The first channel of the last panel: what is looked at in stored blocks.
constexpr int64_t last_packed_panel(int64_t n, int tile_n) {
  return n == 0 ? 0 : (n - 1) / tile_n * tile_n;
}

// Stored blocks come from files, so nothing in them is believed. check_packed_header() and the operations'
// check functions compare a block, whose length the caller has compared with the operation's packed_bytes,
// with what packing would make: every byte of the header, and one panel as a sample of the weights.

/// Throws kInvalidArgument, naming the field, unless the block begins with what begin_packed() would write.
void check_packed_header(const PackedKind& kind, PackedHeader wanted, const void* block);

/// Throws kInvalidArgument unless `bytes` are equal; `what` is their name in the message.
void check_packed_bytes(const PackedKind& kind, const char* what, const void* stored, const void* made,
                        size_t bytes);

/// Memory for a few panels, aligned.
class PackedScratch {
 public:
  explicit PackedScratch(size_t bytes);
  ~PackedScratch();
  PackedScratch(const PackedScratch&) = delete;
  PackedScratch& operator=(const PackedScratch&) = delete;
  void* data() const { return data_; }

 private:
  void* data_;
};

/// Throws kInvalidArgument for a scale that is negative, infinite or NaN, naming the channel (and the group,
/// if it is not negative).
void check_packed_scale(const PackedKind& kind, float scale, int64_t channel, int64_t group = -1);

/// panels * tile_n * k, or kInvalidArgument for negative sizes and for products past 2^61.
int64_t packed_weight_count(const PackedKind& kind, int64_t n, int64_t k, int tile_n);

/// Blocks of panels with one element for each k and column, nothing padded along k:
///   header, one factor for each column (padded to whole panels; not for every kind), the panels
///   panel p, k, column c  ->  the element of channel p * tile_n + c at k, zero bits beyond n.
struct PanelKind {
  PackedKind kind;
  int element_bytes;
  bool factors;
};

/// Such a block taken apart; it stays the caller's.
struct PackedPanels {
  int64_t n;
  int64_t k;
  int tile_n;
  uint32_t format;
  int64_t panel_count;
  int64_t panel_bytes;
  const float* factor;            ///< [panel_count * tile_n], or nullptr
  const unsigned char* elements;  ///< panel_bytes for each panel
};

/// Throws kInvalidArgument for negative sizes and for sizes whose bytes overflow.
size_t packed_panels_bytes(const PanelKind& kind, int64_t n, int64_t k, int tile_n);

/// A cleared block at `out`, packed_panels_bytes long, for the caller to fill. Throws as begin_packed does.
PackedPanels begin_packed_panels(const PanelKind& kind, int64_t n, int64_t k, int tile_n, uint32_t format,
                                 void* out);

/// Throws as open_packed does.
PackedPanels open_packed_panels(const PanelKind& kind, const void* block, int tile_n);

/// Throws kInvalidArgument unless the header is that of n channels of k weights, and the last panel is the
/// only one that `pack_last` makes of the channels from last_packed_panel() on.
void check_packed_panels(const PanelKind& kind, const PackedPanels& wanted, const void* block,
                         const std::function<void(void* out)>& pack_last);

/// The first element of a channel in a block under construction; its next k is tile_n elements on.
template <typename T>
T* packed_column(const PackedPanels& packed, int64_t channel) {
  auto* elements = reinterpret_cast<T*>(const_cast<unsigned char*>(packed.elements));
  return elements + channel / packed.tile_n * packed.tile_n * packed.k + channel % packed.tile_n;
}

}  // namespace halftone::kernels
