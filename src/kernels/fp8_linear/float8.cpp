#include "kernels/fp8_linear/float8.h"

#include <bit>
#include <cfloat>
#include <cmath>

#include "kernels/fp8_linear/kernels.h"

namespace halftone::kernels {
namespace {

struct Layout {
  int shift;            // float mantissa bits that are dropped
  uint32_t rebias;      // difference of the exponents' biases, in the last place kept
  float normal;         // smallest normal number
  float magic;          // adding it leaves the denormal's integer in the last bits
  uint32_t largest;     // what anything larger becomes
  uint32_t infinities;  // codes from here on are not finite
};

constexpr Layout layout_of(Float8Format format) {
  return format == Float8Format::kE4m3fn ? Layout{20, 120 << 3, 0x1p-6f, 0x1p14f, 0x7e, 0x7f}
                                         : Layout{21, 112 << 2, 0x1p-14f, 0x1p7f, 0x7c, 0x7c};
}

}  // namespace

float float8_largest(Float8Format format) {
  return format == Float8Format::kE4m3fn ? 448.0f : 57344.0f;
}

const char* to_string(Float8Format format) {
  return format == Float8Format::kE4m3fn ? "e4m3fn" : "e5m2";
}

uint8_t float8_from_float(float x, Float8Format format) {
  const Layout l = layout_of(format);
  const uint32_t sign = std::bit_cast<uint32_t>(x) >> 24 & 0x80;
  const uint32_t magnitude = std::bit_cast<uint32_t>(x) & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<uint8_t>(sign | 0x7f);
  const float absolute = std::bit_cast<float>(magnitude);
  if (absolute < l.normal) {
    // The sum's last place is the smallest denormal, so the addition itself rounds to it.
    const uint32_t code = std::bit_cast<uint32_t>(absolute + l.magic) - std::bit_cast<uint32_t>(l.magic);
    return static_cast<uint8_t>(sign | code);
  }
  const uint32_t half = (1u << (l.shift - 1)) - 1 + (magnitude >> l.shift & 1);
  const uint32_t code = ((magnitude + half) >> l.shift) - l.rebias;
  return static_cast<uint8_t>(sign | (code < l.largest ? code : l.largest));
}

float float8_to_float(uint8_t bits, Float8Format format) {
  const Layout l = layout_of(format);
  const uint32_t code = bits & 0x7f;
  const int mantissa_bits = 23 - l.shift;
  float value;
  if (code >= l.infinities) {
    value = code == 0x7c ? INFINITY : NAN;
  } else if (code < 1u << mantissa_bits) {
    value = static_cast<float>(code) * (l.normal / static_cast<float>(1 << mantissa_bits));
  } else {
    value = std::bit_cast<float>((code + l.rebias) << l.shift);
  }
  return (bits & 0x80) != 0 ? -value : value;
}

void encode_float8(const float* x, int64_t count, Float8Format format, uint8_t* bytes, Isa isa) {
  (isa >= Isa::kAvx2 ? float8_encode_avx2 : float8_encode_scalar)(x, count, format, bytes);
}

void decode_float8(const uint8_t* bytes, int64_t count, Float8Format format, float* x, Isa isa) {
  (isa >= Isa::kAvx2 ? float8_decode_avx2 : float8_decode_scalar)(bytes, count, format, x);
}

float float8_row_scale(const float* x, int64_t count) {
  float largest = 0.0f;
  bool finite = true;
  for (int64_t i = 0; i < count; ++i) {
    const float absolute = std::abs(x[i]);
    finite = finite && absolute <= FLT_MAX;  // false for NaN too
    largest = absolute > largest ? absolute : largest;
  }
  if (!finite) return NAN;
  const float scale = largest / 448.0f;
  return scale < FLT_MIN ? FLT_MIN : scale;
}

}  // namespace halftone::kernels
