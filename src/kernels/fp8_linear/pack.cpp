#include "kernels/fp8_linear/pack.h"

#include <cfloat>

#include "base/errors.h"

namespace halftone::kernels {
namespace {

constexpr PanelKind kKind{{"fp8_linear", "htfp8_w", kFp8PackVersion}, 1, true};

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
  return packed_panels_bytes(kKind, n, k, tile_n);
}

void pack_fp8_weights(const Fp8Weights& weights, int tile_n, void* out) {
  const auto format = static_cast<uint32_t>(weights.format);
  const PackedPanels packed = begin_packed_panels(kKind, weights.n, weights.k, tile_n, format, out);
  for (int64_t c = 0; c < weights.n; ++c) {
    const_cast<float*>(packed.factor)[c] = factor_of(weights, c);
    pack_column(weights, c, tile_n, packed_column<uint8_t>(packed, c));
  }
}

PackedPanels open_fp8_packed(const void* block, int tile_n) {
  return open_packed_panels(kKind, block, tile_n);
}

void check_fp8_packed(const Fp8Weights& last, int64_t n, int tile_n, const void* block) {
  PackedPanels wanted{};
  wanted.n = n;
  wanted.k = last.k;
  wanted.tile_n = tile_n;
  wanted.format = static_cast<uint32_t>(last.format);
  check_packed_panels(kKind, wanted, block, [&](void* out) { pack_fp8_weights(last, tile_n, out); });
}

}  // namespace halftone::kernels
