// IEEE half precision, as files hold it.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace halftone {

/// The number that these 16 bits are. Exact: every half is a float. A NaN keeps its sign and its payload.
inline float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000U) << 16;
  const uint32_t exponent = (half >> 10) & 0x1FU;
  const uint32_t fraction = half & 0x3FFU;
  if (exponent == 0) {  // zero and subnormals: a multiple of 2^-24
    return std::copysign(static_cast<float>(fraction) * 0x1p-24F, std::bit_cast<float>(sign));
  }
  // The bias is 15 in a half and 127 in a float; the highest exponent stays the highest.
  const uint32_t widened = exponent == 31 ? 255 : exponent + (127 - 15);
  return std::bit_cast<float>(sign | widened << 23 | fraction << 13);
}

/// The same of a bfloat16: the upper half of a float.
inline float bfloat16_to_float(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

}  // namespace halftone
