#include "kernels/int4_weight_only_linear/pack.h"

#include <cmath>
#include <cstring>

#include "base/checked.h"
#include "base/errors.h"

namespace halftone::kernels {
namespace {

constexpr char kMagic[8] = "htint4o";

int64_t panel_count(int64_t n, int tile_n) {
  return n / tile_n + (n % tile_n != 0);
}

int64_t table_floats(int64_t n, int64_t k, int group, int tile_n) {
  return panel_count(n, tile_n) * (k / group) * tile_n;
}

void check_channel(const Int4WeightOnlyWeights& weights, int64_t c) {
  const int64_t groups = weights.k / weights.group;
  for (int64_t g = 0; g < groups; ++g) {
    const float scale = weights.scale[c * groups + g];
    if (!(scale >= 0.0f) || std::isinf(scale)) {
      fail(ErrorCode::kInvalidArgument, "int4_weight_only_linear: the scale of channel {}, group {} is {}", c,
           g, scale);
    }
    const int zero = weights.zero_point != nullptr ? weights.zero_point[c * groups + g] : 0;
    if (zero < -8 || zero > 7) {
      fail(ErrorCode::kInvalidArgument,
           "int4_weight_only_linear: the zero point of channel {}, group {} is {}", c, g, zero);
    }
  }
  for (int64_t k = 0; k < weights.k; ++k) {
    const int w = weights.w[c * weights.stride + k];
    if (w < -8 || w > 7)
      fail(ErrorCode::kInvalidArgument, "int4_weight_only_linear: weight {} of channel {} is {}", k, c, w);
  }
}

}  // namespace

const char* refuse_int4_group(int64_t k, int group) {
  if (group != 32 && group != 64 && group != 128 && group != 256)
    return "the group size is not 32, 64, 128 or 256";
  return k % group == 0 ? nullptr : "the group size does not divide k";
}

size_t int4_weight_only_packed_bytes(int64_t n, int64_t k, int group, bool zero_points, int tile_n) {
  if (const char* reason = refuse_int4_group(k, group)) {
    fail(ErrorCode::kInvalidArgument, "int4_weight_only_linear: {} ({} and {})", reason, group, k);
  }
  const int64_t factors[] = {n < 0 ? 0 : panel_count(n, tile_n), tile_n, k};
  const auto weights = checked_product<int64_t>(factors);
  if (n < 0 || k < 0 || !weights || *weights > INT64_MAX / 4) {
    fail(ErrorCode::kInvalidArgument, "int4_weight_only_linear: cannot pack {} channels of {} weights", n, k);
  }
  const int64_t tables = table_floats(n, k, group, tile_n) * int64_t{sizeof(float)} * (zero_points ? 2 : 1);
  return sizeof(Int4WeightOnlyHeader) + static_cast<size_t>(tables + *weights / 2);
}

void pack_int4_weight_only(const Int4WeightOnlyWeights& weights, int tile_n, void* out) {
  const bool zero_points = weights.zero_point != nullptr;
  const size_t bytes =
      int4_weight_only_packed_bytes(weights.n, weights.k, weights.group, zero_points, tile_n);
  if (reinterpret_cast<uintptr_t>(out) % kInt4WeightOnlyAlignment != 0) {
    fail(ErrorCode::kInvalidArgument, "int4_weight_only_linear: a packed block must be aligned to {} bytes",
         kInt4WeightOnlyAlignment);
  }
  std::memset(out, 0, bytes);
  Int4WeightOnlyHeader header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kInt4WeightOnlyPackVersion;
  header.tile_n = static_cast<uint32_t>(tile_n);
  header.group = static_cast<uint32_t>(weights.group);
  header.has_zero_points = zero_points;
  header.n = weights.n;
  header.k = weights.k;
  std::memcpy(out, &header, sizeof(header));
  const Int4WeightOnlyPacked packed = open_int4_weight_only(out, tile_n);
  const int64_t groups = weights.k / weights.group;
  for (int64_t c = 0; c < weights.n; ++c) {
    check_channel(weights, c);
    const int64_t panel = c / tile_n, column = c % tile_n;
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t at = (panel * groups + g) * tile_n + column;
      const_cast<float*>(packed.scale)[at] = weights.scale[c * groups + g];
      if (zero_points) const_cast<float*>(packed.zero_point)[at] = 8.0f + weights.zero_point[c * groups + g];
    }
    uint32_t* lanes = const_cast<uint32_t*>(packed.panels) + panel * (weights.k / 8) * tile_n + column;
    for (int64_t k = 0; k < weights.k; ++k) {
      lanes[k / 8 * tile_n] |= static_cast<uint32_t>(weights.w[c * weights.stride + k] + 8) << (k % 8 * 4);
    }
  }
}

Int4WeightOnlyPacked open_int4_weight_only(const void* block, int tile_n) {
  if (block == nullptr || reinterpret_cast<uintptr_t>(block) % kInt4WeightOnlyAlignment != 0) {
    fail(ErrorCode::kInvalidArgument, "int4_weight_only_linear: packed weights must be aligned to {} bytes",
         kInt4WeightOnlyAlignment);
  }
  const auto* header = static_cast<const Int4WeightOnlyHeader*>(block);
  if (std::memcmp(header->magic, kMagic, sizeof(kMagic)) != 0 ||
      header->version != kInt4WeightOnlyPackVersion) {
    fail(ErrorCode::kInvalidArgument,
         "int4_weight_only_linear: the weights are not a packed block of version {}",
         kInt4WeightOnlyPackVersion);
  }
  if (header->tile_n != static_cast<uint32_t>(tile_n)) {
    fail(ErrorCode::kInvalidArgument,
         "int4_weight_only_linear: the weights are packed for panels of {}, the kernel reads {}",
         header->tile_n, tile_n);
  }
  const auto group = static_cast<int>(header->group);
  const int64_t floats = table_floats(header->n, header->k, group, tile_n);
  const auto* scale = reinterpret_cast<const float*>(header + 1);
  const bool zero = header->has_zero_points != 0;
  const auto* panels = reinterpret_cast<const uint32_t*>(scale + floats * (zero ? 2 : 1));
  return {header->n,
          header->k,
          group,
          tile_n,
          panel_count(header->n, tile_n),
          scale,
          zero ? scale + floats : nullptr,
          panels};
}

}  // namespace halftone::kernels
