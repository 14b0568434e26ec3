#include "kernels/common/packed_block.h"

#include <cmath>
#include <cstring>
#include <new>

#include "base/checked.h"
#include "base/errors.h"

namespace halftone::kernels {
namespace {

void check_alignment(const PackedKind& kind, const void* block) {
  if (block == nullptr || reinterpret_cast<uintptr_t>(block) % kPackedAlignment != 0) {
    fail(ErrorCode::kInvalidArgument, "{}: packed weights must be aligned to {} bytes", kind.operation,
         kPackedAlignment);
  }
}

}  // namespace

void begin_packed(const PackedKind& kind, PackedHeader header, void* out, size_t bytes) {
  check_alignment(kind, out);
  std::memset(out, 0, bytes);
  std::memcpy(header.magic, kind.magic, sizeof(header.magic));
  header.version = kind.version;
  std::memcpy(out, &header, sizeof(header));
}

const PackedHeader& open_packed(const PackedKind& kind, const void* block, int tile_n) {
  check_alignment(kind, block);
  const auto& header = *static_cast<const PackedHeader*>(block);
  if (std::memcmp(header.magic, kind.magic, sizeof(header.magic)) != 0 || header.version != kind.version) {
    fail(ErrorCode::kInvalidArgument, "{}: the weights are not a packed block of version {}", kind.operation,
         kind.version);
  }
  if (header.tile_n != static_cast<uint32_t>(tile_n)) {
    fail(ErrorCode::kInvalidArgument, "{}: the weights are packed for panels of {}, the kernel reads {}",
         kind.operation, header.tile_n, tile_n);
  }
  return header;
}

void check_packed_header(const PackedKind& kind, PackedHeader wanted, const void* block) {
  check_alignment(kind, block);
  std::memcpy(wanted.magic, kind.magic, sizeof(wanted.magic));
  wanted.version = kind.version;
  PackedHeader found;
  std::memcpy(&found, block, sizeof(found));
  if (std::memcmp(found.magic, wanted.magic, sizeof(wanted.magic)) != 0)
    fail(ErrorCode::kInvalidArgument, "{}: magic is not that of its blocks", kind.operation);
  const auto require = [&](const char* field, int64_t stored, int64_t made) {
    if (stored != made)
      fail(ErrorCode::kInvalidArgument, "{}: {} is {} in the stored block, {} in the weights", kind.operation,
           field, stored, made);
  };
  require("version", found.version, wanted.version);
  require("tile_n", found.tile_n, wanted.tile_n);
  require("group", found.group, wanted.group);
  require("has_zero_points", found.has_zero_points, wanted.has_zero_points);
  require("n", found.n, wanted.n);
  require("k", found.k, wanted.k);
  require("format", found.format, wanted.format);
  require("tile_k", found.tile_k, wanted.tile_k);
  check_packed_bytes(kind, "padding", found.padding, wanted.padding, sizeof(wanted.padding));
}

void check_packed_bytes(const PackedKind& kind, const char* what, const void* stored, const void* made,
                        size_t bytes) {
  if (bytes != 0 && std::memcmp(stored, made, bytes) != 0)
    fail(ErrorCode::kInvalidArgument, "{}: {} of the stored block is not what the weights give",
         kind.operation, what);
}

PackedScratch::PackedScratch(size_t bytes)
    : data_(::operator new (bytes, std::align_val_t{kPackedAlignment})) {}

PackedScratch::~PackedScratch() {
  ::operator delete (data_, std::align_val_t{kPackedAlignment});
}

void check_packed_scale(const PackedKind& kind, float scale, int64_t channel, int64_t group) {
  if (scale >= 0.0f && !std::isinf(scale)) return;
  if (group < 0) {
    fail(ErrorCode::kInvalidArgument, "{}: the weight scale of channel {} is {}", kind.operation, channel,
         scale);
  }
  fail(ErrorCode::kInvalidArgument, "{}: the scale of channel {}, group {} is {}", kind.operation, channel,
       group, scale);
}

int64_t packed_weight_count(const PackedKind& kind, int64_t n, int64_t k, int tile_n) {
  const int64_t factors[] = {n < 0 ? 0 : packed_panel_count(n, tile_n), tile_n, k};
  const auto count = checked_product<int64_t>(factors);
  if (n < 0 || k < 0 || !count || *count > (int64_t{1} << 61)) {
    fail(ErrorCode::kInvalidArgument, "{}: cannot pack {} channels of {} weights", kind.operation, n, k);
  }
  return *count;
}

namespace {

// tile_n is a multiple of 16, so that the factors end on a multiple of 64 bytes.
int64_t factor_bytes(const PanelKind& kind, int64_t n, int tile_n) {
  return kind.factors ? packed_panel_count(n, tile_n) * tile_n * int64_t{sizeof(float)} : 0;
}

PackedHeader panels_header(int64_t n, int64_t k, int tile_n, uint32_t format) {
  PackedHeader header{};
  header.tile_n = static_cast<uint32_t>(tile_n);
  header.format = format;
  header.n = n;
  header.k = k;
  return header;
}

}  // namespace

size_t packed_panels_bytes(const PanelKind& kind, int64_t n, int64_t k, int tile_n) {
  const int64_t weights = packed_weight_count(kind.kind, n, k, tile_n);
  if (n > INT32_MAX || weights > (int64_t{1} << 61) / kind.element_bytes) {
    fail(ErrorCode::kInvalidArgument, "{}: cannot pack {} channels of {} weights", kind.kind.operation, n, k);
  }
  return sizeof(PackedHeader) +
         static_cast<size_t>(factor_bytes(kind, n, tile_n) + weights * kind.element_bytes);
}

PackedPanels begin_packed_panels(const PanelKind& kind, int64_t n, int64_t k, int tile_n, uint32_t format,
                                 void* out) {
  begin_packed(kind.kind, panels_header(n, k, tile_n, format), out, packed_panels_bytes(kind, n, k, tile_n));
  return open_packed_panels(kind, out, tile_n);
}

PackedPanels open_packed_panels(const PanelKind& kind, const void* block, int tile_n) {
  const PackedHeader& header = open_packed(kind.kind, block, tile_n);
  const auto* factor = reinterpret_cast<const float*>(&header + 1);
  return {header.n,
          header.k,
          tile_n,
          header.format,
          packed_panel_count(header.n, tile_n),
          header.k * tile_n * kind.element_bytes,
          kind.factors ? factor : nullptr,
          reinterpret_cast<const unsigned char*>(factor) + factor_bytes(kind, header.n, tile_n)};
}

void check_packed_panels(const PanelKind& kind, const PackedPanels& wanted, const void* block,
                         const std::function<void(void* out)>& pack_last) {
  const int tile_n = wanted.tile_n;
  check_packed_header(kind.kind, panels_header(wanted.n, wanted.k, tile_n, wanted.format), block);
  if (wanted.n == 0) return;
  const int64_t first = last_packed_panel(wanted.n, tile_n), count = wanted.n - first;
  const PackedScratch scratch(packed_panels_bytes(kind, count, wanted.k, tile_n));
  pack_last(scratch.data());
  const PackedPanels made = open_packed_panels(kind, scratch.data(), tile_n);
  const PackedPanels stored = open_packed_panels(kind, block, tile_n);
  if (kind.factors)
    check_packed_bytes(kind.kind, "a scale", stored.factor + first, made.factor,
                       static_cast<size_t>(factor_bytes(kind, count, tile_n)));
  check_packed_bytes(kind.kind, "a weight", stored.elements + first / tile_n * stored.panel_bytes,
                     made.elements, static_cast<size_t>(made.panel_bytes));
}

}  // namespace halftone::kernels
