#include "kernels/common/packed_block.h"

#include <cmath>
#include <cstring>

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
  PackedHeader header{};
  header.tile_n = static_cast<uint32_t>(tile_n);
  header.format = format;
  header.n = n;
  header.k = k;
  begin_packed(kind.kind, header, out, packed_panels_bytes(kind, n, k, tile_n));
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

}  // namespace halftone::kernels
