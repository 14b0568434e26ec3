#include "kernels/int8_weight_only_linear/pack.h"

#include <cmath>
#include <cstring>

#include "base/checked.h"
#include "base/errors.h"

namespace halftone::kernels {
namespace {

constexpr char kMagic[8] = "htint8o";

int64_t panel_count(int64_t n, int tile_n) {
  return n / tile_n + (n % tile_n != 0);
}

// tile_n is a multiple of 16, so that the scales end on a multiple of 64 bytes.
int64_t scale_bytes(int64_t n, int tile_n) {
  return panel_count(n, tile_n) * tile_n * int64_t{sizeof(float)};
}

}  // namespace

size_t int8_weight_only_packed_bytes(int64_t n, int64_t k, int tile_n) {
  const int64_t factors[] = {n < 0 ? 0 : panel_count(n, tile_n), tile_n, k};
  const auto bytes = checked_product<int64_t>(factors);
  if (n < 0 || k < 0 || n > INT32_MAX || !bytes || *bytes > INT64_MAX / 2) {
    fail(ErrorCode::kInvalidArgument, "int8_weight_only_linear: cannot pack {} channels of {} weights", n, k);
  }
  return sizeof(Int8WeightOnlyHeader) + static_cast<size_t>(scale_bytes(n, tile_n) + *bytes);
}

void pack_int8_weight_only(const Int8WeightOnlyWeights& weights, int tile_n, void* out) {
  const size_t bytes = int8_weight_only_packed_bytes(weights.n, weights.k, tile_n);
  if (reinterpret_cast<uintptr_t>(out) % kInt8WeightOnlyAlignment != 0) {
    fail(ErrorCode::kInvalidArgument, "int8_weight_only_linear: a packed block must be aligned to {} bytes",
         kInt8WeightOnlyAlignment);
  }
  std::memset(out, 0, bytes);
  Int8WeightOnlyHeader header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kInt8WeightOnlyPackVersion;
  header.tile_n = static_cast<uint32_t>(tile_n);
  header.n = weights.n;
  header.k = weights.k;
  std::memcpy(out, &header, sizeof(header));
  float* scale = reinterpret_cast<float*>(static_cast<char*>(out) + sizeof(header));
  int8_t* panels = reinterpret_cast<int8_t*>(scale) + scale_bytes(weights.n, tile_n);
  for (int64_t c = 0; c < weights.n; ++c) {
    if (!(weights.scale[c] >= 0.0f) || std::isinf(weights.scale[c])) {
      fail(ErrorCode::kInvalidArgument, "int8_weight_only_linear: the weight scale of channel {} is {}", c,
           weights.scale[c]);
    }
    scale[c] = weights.scale[c];
    int8_t* column = panels + c / tile_n * tile_n * weights.k + c % tile_n;
    for (int64_t k = 0; k < weights.k; ++k) column[k * tile_n] = weights.w[c * weights.stride + k];
  }
}

Int8WeightOnlyPacked open_int8_weight_only(const void* block, int tile_n) {
  if (block == nullptr || reinterpret_cast<uintptr_t>(block) % kInt8WeightOnlyAlignment != 0) {
    fail(ErrorCode::kInvalidArgument, "int8_weight_only_linear: packed weights must be aligned to {} bytes",
         kInt8WeightOnlyAlignment);
  }
  const auto* header = static_cast<const Int8WeightOnlyHeader*>(block);
  if (std::memcmp(header->magic, kMagic, sizeof(kMagic)) != 0 ||
      header->version != kInt8WeightOnlyPackVersion) {
    fail(ErrorCode::kInvalidArgument,
         "int8_weight_only_linear: the weights are not a packed block of version {}",
         kInt8WeightOnlyPackVersion);
  }
  if (header->tile_n != static_cast<uint32_t>(tile_n)) {
    fail(ErrorCode::kInvalidArgument,
         "int8_weight_only_linear: the weights are packed for panels of {}, the kernel reads {}",
         header->tile_n, tile_n);
  }
  const auto* scale = reinterpret_cast<const float*>(header + 1);
  return {header->n, header->k,
          tile_n,    panel_count(header->n, tile_n),
          scale,     reinterpret_cast<const int8_t*>(scale) + scale_bytes(header->n, tile_n)};
}

}  // namespace halftone::kernels
