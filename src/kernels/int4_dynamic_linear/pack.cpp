#include "kernels/int4_dynamic_linear/pack.h"

#include "base/errors.h"

namespace halftone::kernels {
namespace {

constexpr PackedKind kKind{"int4_dynamic_linear", "htint4d", 1};

// PackedHeader::format. Blocks of before had integers only.
constexpr uint32_t kFloatZeroPoints = 1;

Int4ZeroPoints zero_points_of(const PackedHeader& header) {
  if (header.has_zero_points == 0) return Int4ZeroPoints::kNone;
  return header.format == kFloatZeroPoints ? Int4ZeroPoints::kFloats : Int4ZeroPoints::kIntegers;
}

int64_t zero_point_bytes(Int4ZeroPoints zero_points, int tile_n) {
  switch (zero_points) {
    case Int4ZeroPoints::kNone:
      return 0;
    case Int4ZeroPoints::kIntegers:
      return (tile_n + 31) / 32 * 32;
    case Int4ZeroPoints::kFloats:
      return tile_n * int64_t{sizeof(float)};
  }
  return 0;
}

Int4DynamicPacked layout(const PackedHeader& header, const uint8_t* panels) {
  const int tile_n = static_cast<int>(header.tile_n), group = static_cast<int>(header.group);
  Int4DynamicPacked p{};
  p.n = header.n;
  p.inputs = header.k;
  p.k = int4_whole_groups(header.k, group);
  p.group = group;
  p.zero_points = zero_points_of(header);
  p.panel_count = packed_panel_count(header.n, tile_n);
  p.panels = panels;
  p.zero_offset = tile_n * int64_t{sizeof(float)};
  p.data_offset = p.zero_offset + zero_point_bytes(p.zero_points, tile_n);
  p.chunk_bytes = p.data_offset + int64_t{group} * tile_n / 2;
  p.panel_bytes = p.k / group * p.chunk_bytes;
  return p;
}

PackedHeader header_of(int64_t n, int64_t k, int group, Int4ZeroPoints zero_points, int tile_n) {
  PackedHeader header{};
  header.tile_n = static_cast<uint32_t>(tile_n);
  header.group = static_cast<uint32_t>(group);
  header.has_zero_points = zero_points != Int4ZeroPoints::kNone;
  header.format = zero_points == Int4ZeroPoints::kFloats ? kFloatZeroPoints : 0;
  header.n = n;
  header.k = k;
  return header;
}

void pack_channel(const Int4Weights& weights, int tile_n, int64_t c, const Int4DynamicPacked& p,
                  uint8_t* panels) {
  uint8_t* chunk = panels + c / tile_n * p.panel_bytes;
  const int64_t column = c % tile_n, groups = weights.groups();
  for (int64_t g = 0; g < groups; ++g, chunk += p.chunk_bytes) {
    reinterpret_cast<float*>(chunk)[column] = weights.scale[c * groups + g];
    if (p.zero_points == Int4ZeroPoints::kIntegers)
      chunk[p.zero_offset + column] = static_cast<uint8_t>(weights.zero_point[c * groups + g]);
    if (p.zero_points == Int4ZeroPoints::kFloats)
      reinterpret_cast<float*>(chunk + p.zero_offset)[column] = weights.float_zero_point[c * groups + g];
    uint8_t* data = chunk + p.data_offset + column * 4;
    for (int k = 0; k < weights.group; ++k) {
      const int shift = k % 8 < 4 ? 0 : 4;
      const int weight = weights.padded_weight(c, g * weights.group + k);
      data[k / 8 * tile_n * 4 + k % 4] |= static_cast<uint8_t>((weight + 8) << shift);
    }
  }
}

}  // namespace

size_t int4_dynamic_packed_bytes(int64_t n, int64_t k, int group, Int4ZeroPoints zero_points, int tile_n) {
  check_int4_group(kKind.operation, k, group);
  packed_weight_count(kKind, n, int4_whole_groups(k, group), tile_n);
  const Int4DynamicPacked p = layout(header_of(n, k, group, zero_points, tile_n), nullptr);
  return sizeof(PackedHeader) + static_cast<size_t>(p.panel_count * p.panel_bytes);
}

void pack_int4_dynamic(const Int4Weights& weights, int tile_n, void* out) {
  const Int4ZeroPoints zero_points = weights.zero_points();
  const size_t bytes = int4_dynamic_packed_bytes(weights.n, weights.k, weights.group, zero_points, tile_n);
  begin_packed(kKind, header_of(weights.n, weights.k, weights.group, zero_points, tile_n), out, bytes);
  const Int4DynamicPacked p = open_int4_dynamic(out, tile_n);
  for (int64_t c = 0; c < weights.n; ++c) {
    check_int4_channel(kKind, weights, c);
    pack_channel(weights, tile_n, c, p, static_cast<uint8_t*>(out) + sizeof(PackedHeader));
  }
}

Int4DynamicPacked open_int4_dynamic(const void* block, int tile_n) {
  const PackedHeader& header = open_packed(kKind, block, tile_n);
  check_int4_group(kKind.operation, header.k, static_cast<int>(header.group));
  return layout(header, static_cast<const uint8_t*>(block) + sizeof(PackedHeader));
}

void check_int4_dynamic_packed(const Int4Weights& last, int64_t n, int tile_n, const void* block) {
  check_int4_group(kKind.operation, last.k, last.group);
  const Int4ZeroPoints zeros = last.zero_points();
  check_packed_header(kKind, header_of(n, last.k, last.group, zeros, tile_n), block);
  if (n == 0) return;
  const PackedScratch scratch(int4_dynamic_packed_bytes(last.n, last.k, last.group, zeros, tile_n));
  pack_int4_dynamic(last, tile_n, scratch.data());
  const Int4DynamicPacked made = open_int4_dynamic(scratch.data(), tile_n),
                          stored = open_int4_dynamic(block, tile_n);
  check_packed_bytes(kKind, "a weight",
                     stored.panels + last_packed_panel(n, tile_n) / tile_n * stored.panel_bytes, made.panels,
                     static_cast<size_t>(made.panel_bytes));
}

}  // namespace halftone::kernels
