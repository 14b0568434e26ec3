#include "kernels/fp8_linear/pack.h"

#include <cfloat>
#include <cmath>
#include <cstring>

#include "base/checked.h"
#include "base/errors.h"

namespace halftone::kernels {
namespace {

constexpr char kMagic[8] = "htfp8_w";

int64_t panel_count(int64_t n, int tile_n) {
  return n / tile_n + (n % tile_n != 0);
}

// tile_n is a multiple of 16, so that the factors end on a multiple of 64 bytes.
int64_t factor_bytes(int64_t n, int tile_n) {
  return panel_count(n, tile_n) * tile_n * int64_t{sizeof(float)};
}

float factor_of(const Fp8Weights& weights, int64_t channel) {
  const float scale = weights.scale[channel * weights.scale_stride];
  if (!(scale >= 0.0f) || scale > FLT_MAX / 65536.0f) {
    fail(ErrorCode::kInvalidArgument, "fp8_linear: the weight scale of channel {} is {}", channel, scale);
  }
  return weights.format == Float8Format::kE4m3fn ? scale * 256.0f : scale;
}

void pack_column(const Fp8Weights& weights, int64_t channel, int tile_n, uint8_t* column) {
  const uint32_t infinities = weights.format == Float8Format::kE4m3fn ? 0x7f : 0x7c;
  const uint8_t* w = weights.w + channel * weights.stride;
  for (int64_t k = 0; k < weights.k; ++k) {
    if ((w[k] & 0x7fu) >= infinities) {
      fail(ErrorCode::kInvalidArgument, "fp8_linear: weight {} of channel {} is {}", k, channel,
           float8_to_float(w[k], weights.format));
    }
    column[k * tile_n] = w[k];
  }
}

}  // namespace

size_t fp8_packed_bytes(int64_t n, int64_t k, int tile_n) {
  const int64_t factors[] = {n < 0 ? 0 : panel_count(n, tile_n), tile_n, k};
  const auto bytes = checked_product<int64_t>(factors);
  if (n < 0 || k < 0 || n > INT32_MAX || !bytes || *bytes > INT64_MAX / 2) {
    fail(ErrorCode::kInvalidArgument, "fp8_linear: cannot pack {} channels of {} weights", n, k);
  }
  return sizeof(Fp8PackHeader) + static_cast<size_t>(factor_bytes(n, tile_n) + *bytes);
}

void pack_fp8_weights(const Fp8Weights& weights, int tile_n, void* out) {
  const size_t bytes = fp8_packed_bytes(weights.n, weights.k, tile_n);
  if (reinterpret_cast<uintptr_t>(out) % kFp8PackAlignment != 0) {
    fail(ErrorCode::kInvalidArgument, "fp8_linear: a packed block must be aligned to {} bytes",
         kFp8PackAlignment);
  }
  std::memset(out, 0, bytes);
  Fp8PackHeader header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kFp8PackVersion;
  header.tile_n = static_cast<uint32_t>(tile_n);
  header.n = weights.n;
  header.k = weights.k;
  header.format = static_cast<uint32_t>(weights.format);
  std::memcpy(out, &header, sizeof(header));
  float* factor = reinterpret_cast<float*>(static_cast<char*>(out) + sizeof(header));
  uint8_t* panels = reinterpret_cast<uint8_t*>(factor) + factor_bytes(weights.n, tile_n);
  for (int64_t c = 0; c < weights.n; ++c) {
    factor[c] = factor_of(weights, c);
    pack_column(weights, c, tile_n, panels + c / tile_n * tile_n * weights.k + c % tile_n);
  }
}

Fp8Packed open_fp8_packed(const void* block, int tile_n) {
  if (block == nullptr || reinterpret_cast<uintptr_t>(block) % kFp8PackAlignment != 0) {
    fail(ErrorCode::kInvalidArgument, "fp8_linear: packed weights must be aligned to {} bytes",
         kFp8PackAlignment);
  }
  const auto* header = static_cast<const Fp8PackHeader*>(block);
  if (std::memcmp(header->magic, kMagic, sizeof(kMagic)) != 0 || header->version != kFp8PackVersion) {
    fail(ErrorCode::kInvalidArgument, "fp8_linear: the weights are not a packed block of version {}",
         kFp8PackVersion);
  }
  if (header->tile_n != static_cast<uint32_t>(tile_n)) {
    fail(ErrorCode::kInvalidArgument,
         "fp8_linear: the weights are packed for panels of {}, the kernel reads {}", header->tile_n, tile_n);
  }
  const auto* factor = reinterpret_cast<const float*>(header + 1);
  return {header->n,
          header->k,
          static_cast<Float8Format>(header->format),
          tile_n,
          panel_count(header->n, tile_n),
          factor,
          reinterpret_cast<const uint8_t*>(factor) + factor_bytes(header->n, tile_n)};
}

}  // namespace halftone::kernels
