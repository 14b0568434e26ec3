// fp8_linear in plain C++, for every machine: the reference of the other kernels.
#include <cmath>

#include "kernels/fp8_linear/kernels.h"

namespace halftone::kernels {

void float8_encode_scalar(const float* x, int64_t count, Float8Format format, uint8_t* bytes) {
  for (int64_t i = 0; i < count; ++i) bytes[i] = float8_from_float(x[i], format);
}

void float8_decode_scalar(const uint8_t* bytes, int64_t count, Float8Format format, float* x) {
  for (int64_t i = 0; i < count; ++i) x[i] = float8_to_float(bytes[i], format);
}

float fp8_round_row_scalar(const float* x, int64_t k, float* y) {
  const float scale = float8_row_scale(x, k);
  for (int64_t i = 0; i < k; ++i) {
    const uint8_t q = float8_from_float(x[i] / scale, Float8Format::kE4m3fn);
    y[i] = std::isnan(scale) ? NAN : float8_to_float(q, Float8Format::kE4m3fn) * scale;
  }
  return scale;
}

void fp8_expand_scalar(const void* packed, int64_t panel, int64_t k, int64_t steps, float* out) {
  const auto& p = *static_cast<const PackedPanels*>(packed);
  const auto format = static_cast<Float8Format>(p.format);
  const uint8_t* q = p.elements + panel * p.panel_bytes + k * p.tile_n;
  const float* factor = p.factor + panel * p.tile_n;
  const float unit = format == Float8Format::kE4m3fn ? 0x1p-8f : 1.0f;  // see pack.h
  for (int64_t i = 0; i < steps * p.tile_n; ++i) {
    out[i] = float8_to_float(q[i], format) * unit * factor[i % p.tile_n];
  }
}

}  // namespace halftone::kernels
