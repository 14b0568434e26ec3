#include "kernels/fp32_linear/pack.h"

#include <cstring>

#include "base/checked.h"
#include "base/errors.h"

namespace halftone::kernels {
namespace {

constexpr char kMagic[8] = "htfp32w";

int64_t panel_count(int64_t n, int tile_n) {
  return n / tile_n + (n % tile_n != 0);
}

}  // namespace

size_t fp32_packed_bytes(int64_t n, int64_t k, int tile_n) {
  const int64_t factors[] = {n < 0 ? 0 : panel_count(n, tile_n), tile_n, k, int64_t{sizeof(float)}};
  const auto bytes = checked_product<int64_t>(factors);
  if (n < 0 || k < 0 || !bytes || *bytes > INT64_MAX - 64) {
    fail(ErrorCode::kInvalidArgument, "fp32_linear: cannot pack {} channels of {} weights", n, k);
  }
  return sizeof(Fp32PackHeader) + static_cast<size_t>(*bytes);
}

void pack_fp32_weights(const Fp32Weights& weights, int tile_n, void* out) {
  const size_t bytes = fp32_packed_bytes(weights.n, weights.k, tile_n);
  if (reinterpret_cast<uintptr_t>(out) % kFp32PackAlignment != 0) {
    fail(ErrorCode::kInvalidArgument, "fp32_linear: a packed block must be aligned to {} bytes",
         kFp32PackAlignment);
  }
  std::memset(out, 0, bytes);
  Fp32PackHeader header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kFp32PackVersion;
  header.tile_n = static_cast<uint32_t>(tile_n);
  header.n = weights.n;
  header.k = weights.k;
  std::memcpy(out, &header, sizeof(header));
  float* panels = reinterpret_cast<float*>(static_cast<char*>(out) + sizeof(header));
  for (int64_t c = 0; c < weights.n; ++c) {
    float* column = panels + c / tile_n * tile_n * weights.k + c % tile_n;
    for (int64_t k = 0; k < weights.k; ++k) column[k * tile_n] = weights.w[c * weights.stride + k];
  }
}

Fp32Packed open_fp32_packed(const void* block, int tile_n) {
  if (block == nullptr || reinterpret_cast<uintptr_t>(block) % kFp32PackAlignment != 0) {
    fail(ErrorCode::kInvalidArgument, "fp32_linear: packed weights must be aligned to {} bytes",
         kFp32PackAlignment);
  }
  const auto* header = static_cast<const Fp32PackHeader*>(block);
  if (std::memcmp(header->magic, kMagic, sizeof(kMagic)) != 0 || header->version != kFp32PackVersion) {
    fail(ErrorCode::kInvalidArgument, "fp32_linear: the weights are not a packed block of version {}",
         kFp32PackVersion);
  }
  if (header->tile_n != static_cast<uint32_t>(tile_n)) {
    fail(ErrorCode::kInvalidArgument,
         "fp32_linear: the weights are packed for panels of {}, the kernel reads {}", header->tile_n, tile_n);
  }
  return {header, reinterpret_cast<const float*>(header + 1), panel_count(header->n, tile_n)};
}

}  // namespace halftone::kernels
