#include "kernels/int4_weight_only_linear/pack.h"

#include <algorithm>

namespace halftone::kernels {
namespace {

constexpr PackedKind kKind{"int4_weight_only_linear", "htint4o", 1};

int64_t table_floats(int64_t n, int64_t k, int group, int tile_n) {
  return packed_panel_count(n, tile_n) * (int4_whole_groups(k, group) / group) * tile_n;
}

PackedHeader header_of(const Int4Weights& weights, int64_t n, int tile_n) {
  PackedHeader header{};
  header.tile_n = static_cast<uint32_t>(tile_n);
  header.group = static_cast<uint32_t>(weights.group);
  header.has_zero_points = weights.zero_points() != Int4ZeroPoints::kNone;
  header.n = n;
  header.k = weights.k;
  return header;
}

/// The scale of a group; 0 if every weight is its zero point, so that zeros stay exactly zero: the kernels
/// subtract 8 · Σ x, whose rounding would leave a trace in the last digits.
float group_scale(const Int4WeightOnlyWeights& weights, int64_t channel, int64_t group) {
  const int64_t entry = channel * weights.groups() + group, first = group * weights.group;
  const float zero = weights.zero_of(entry);
  const int8_t* w = weights.w + channel * weights.stride + first;
  const int64_t count = std::min<int64_t>(weights.group, weights.k - first);
  const bool all_zero =
      std::all_of(w, w + count, [&](int8_t each) { return static_cast<float>(each) == zero; });
  return all_zero ? 0.0f : weights.scale[entry];
}

}  // namespace

size_t int4_weight_only_packed_bytes(int64_t n, int64_t k, int group, Int4ZeroPoints zero_points,
                                     int tile_n) {
  check_int4_group(kKind.operation, k, group);
  const int64_t weights = packed_weight_count(kKind, n, int4_whole_groups(k, group), tile_n);
  const int64_t tables = table_floats(n, k, group, tile_n) * int64_t{sizeof(float)} *
                         (zero_points == Int4ZeroPoints::kNone ? 1 : 2);
  return sizeof(PackedHeader) + static_cast<size_t>(tables + weights / 2);
}

void pack_int4_weight_only(const Int4WeightOnlyWeights& weights, int tile_n, void* out) {
  const bool zero_points = weights.zero_points() != Int4ZeroPoints::kNone;
  const size_t bytes =
      int4_weight_only_packed_bytes(weights.n, weights.k, weights.group, weights.zero_points(), tile_n);
  begin_packed(kKind, header_of(weights, weights.n, tile_n), out, bytes);
  const Int4WeightOnlyPacked packed = open_int4_weight_only(out, tile_n);
  const int64_t groups = weights.groups();
  for (int64_t c = 0; c < weights.n; ++c) {
    check_int4_channel(kKind, weights, c);
    const int64_t panel = c / tile_n, column = c % tile_n;
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t at = (panel * groups + g) * tile_n + column;
      const_cast<float*>(packed.scale)[at] = group_scale(weights, c, g);
      if (zero_points) const_cast<float*>(packed.zero_point)[at] = 8.0f + weights.zero_of(c * groups + g);
    }
    uint32_t* lanes = const_cast<uint32_t*>(packed.panels) + panel * (packed.k / 8) * tile_n + column;
    for (int64_t k = 0; k < packed.k; ++k) {
      lanes[k / 8 * tile_n] |= static_cast<uint32_t>(weights.padded_weight(c, k) + 8) << (k % 8 * 4);
    }
  }
}

Int4WeightOnlyPacked open_int4_weight_only(const void* block, int tile_n) {
  const PackedHeader& header = open_packed(kKind, block, tile_n);
  const auto group = static_cast<int>(header.group);
  check_int4_group(kKind.operation, header.k, group);
  const int64_t floats = table_floats(header.n, header.k, group, tile_n);
  const auto* scale = reinterpret_cast<const float*>(&header + 1);
  const bool zero = header.has_zero_points != 0;
  const auto* panels = reinterpret_cast<const uint32_t*>(scale + floats * (zero ? 2 : 1));
  return {header.n,
          header.k,
          int4_whole_groups(header.k, group),
          group,
          tile_n,
          packed_panel_count(header.n, tile_n),
          scale,
          zero ? scale + floats : nullptr,
          panels};
}

void check_int4_weight_only_packed(const Int4Weights& last, int64_t n, int tile_n, const void* block) {
  check_int4_group(kKind.operation, last.k, last.group);
  check_packed_header(kKind, header_of(last, n, tile_n), block);
  if (n == 0) return;
  const bool zeros = last.zero_points() != Int4ZeroPoints::kNone;
  const PackedScratch scratch(
      int4_weight_only_packed_bytes(last.n, last.k, last.group, last.zero_points(), tile_n));
  pack_int4_weight_only(last, tile_n, scratch.data());
  const Int4WeightOnlyPacked made = open_int4_weight_only(scratch.data(), tile_n),
                             stored = open_int4_weight_only(block, tile_n);
  const int64_t panel = last_packed_panel(n, tile_n) / tile_n, lanes = made.k / 8 * tile_n,
                floats = made.k / made.group * tile_n;
  const auto table_bytes = static_cast<size_t>(floats) * sizeof(float);
  check_packed_bytes(kKind, "a scale", stored.scale + panel * floats, made.scale, table_bytes);
  if (zeros)
    check_packed_bytes(kKind, "a zero point", stored.zero_point + panel * floats, made.zero_point,
                       table_bytes);
  check_packed_bytes(kKind, "a weight", stored.panels + panel * lanes, made.panels,
                     static_cast<size_t>(lanes) * sizeof(uint32_t));
}

}  // namespace halftone::kernels
