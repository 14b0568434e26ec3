// 8-bit floating point: what the bytes mean, and the conversions from and to float.
//
//            sign exponent mantissa  bias  largest  smallest > 0   not finite
//   e4m3fn     1      4        3       7      448       2^-9       NaN = 0x7f, 0xff; no infinity
//   e5m2       1      5        2      15    57344       2^-16      infinity = 0x7c, NaN = 0x7d … 0x7f
//                                                                  (and with the sign)
//
// Encoding rounds to nearest, ties to even, denormals included. Too large: e4m3fn saturates to ±448,
// infinities too; e5m2 gives an infinity, as IEEE rounding does. NaN gives 0x7f with its sign. This is what
// PyTorch's conversions to Float8_e4m3fn and Float8_e5m2 give, bit for bit, and it is the same on every
// instruction set.
#pragma once

#include <cstdint>

#include "cpu/isa.h"

namespace halftone::kernels {

enum class Float8Format : int { kE4m3fn, kE5m2 };

inline constexpr Float8Format kAllFloat8Formats[] = {Float8Format::kE4m3fn, Float8Format::kE5m2};

/// 448 or 57344.
float float8_largest(Float8Format format);

/// "e4m3fn", "e5m2".
const char* to_string(Float8Format format);

uint8_t float8_from_float(float x, Float8Format format);
float float8_to_float(uint8_t bits, Float8Format format);

/// `count` elements; the fastest way at `isa`. Neither pointer needs an alignment beyond its type's.
void encode_float8(const float* x, int64_t count, Float8Format format, uint8_t* bytes,
                   Isa isa = active_isa());
void decode_float8(const uint8_t* bytes, int64_t count, Float8Format format, float* x,
                   Isa isa = active_isa());

/// The scale that spreads a row over e4m3fn: max(max|x| / 448, FLT_MIN), NaN if the row is not finite.
/// One rounded division, so it is the same everywhere.
float float8_row_scale(const float* x, int64_t count);

}  // namespace halftone::kernels
