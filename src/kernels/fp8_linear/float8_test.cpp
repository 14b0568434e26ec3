#include "kernels/fp8_linear/float8.h"

#include <gtest/gtest.h>

#include <bit>
#include <cfloat>
#include <cmath>

#include "kernels/common/test_support.h"

namespace halftone::kernels {
namespace {

using testing::Guarded;
using testing::Random;

// The value of a code by its definition, in double precision; infinities and NaN as such.
double value_of(int code, Float8Format format) {
  const int mantissa_bits = format == Float8Format::kE4m3fn ? 3 : 2,
            bias = format == Float8Format::kE4m3fn ? 7 : 15;
  const int exponent = code >> mantissa_bits, mantissa = code & ((1 << mantissa_bits) - 1);
  if (format == Float8Format::kE4m3fn && code == 0x7f) return NAN;
  if (format == Float8Format::kE5m2 && exponent == 31) return mantissa == 0 ? INFINITY : NAN;
  if (exponent == 0) return std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

// The nearest code by search, the even one of two; e5m2's infinity takes the place of the number after the
// largest.
int nearest(float x, Float8Format format) {
  const int sign = std::signbit(x) ? 0x80 : 0;
  if (std::isnan(x)) return sign | 0x7f;
  const bool saturates = format == Float8Format::kE4m3fn;
  const int last = saturates ? 0x7e : 0x7c;
  const double absolute = std::abs(double{x});
  if (std::isinf(x)) return sign | last;
  int best = 0;
  for (int code = 1; code <= last; ++code) {
    const double value = code == 0x7c && !saturates ? 65536.0 : value_of(code, format);
    const double distance = std::abs(absolute - value);
    const double before =
        std::abs(absolute - (best == 0x7c && !saturates ? 65536.0 : value_of(best, format)));
    if (distance < before || (distance == before && code % 2 == 0)) best = code;
  }
  return sign | best;
}

std::vector<Isa> levels() {
  std::vector<Isa> all;
  for (Isa isa : kAllIsas) {
    if (isa <= machine_isa()) all.push_back(isa);
  }
  return all;
}

void expect_encodes(const Guarded<float>& x, Float8Format format) {
  Guarded<uint8_t> bytes(x.size());
  for (Isa isa : levels()) {
    encode_float8(x.data(), x.size(), format, bytes.data(), isa);
    for (int64_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(bytes[i], nearest(x[i], format))
          << to_string(format) << " of " << x[i] << " at level " << to_string(isa);
    }
  }
}

TEST(Float8, DecodesEveryByte) {
  Guarded<uint8_t> bytes(256);
  for (int i = 0; i < 256; ++i) bytes[i] = static_cast<uint8_t>(i);
  for (Float8Format format : kAllFloat8Formats) {
    for (Isa isa : levels()) {
      Guarded<float> x(256);
      decode_float8(bytes.data(), 256, format, x.data(), isa);
      for (int i = 0; i < 256; ++i) {
        const double want = value_of(i & 0x7f, format);
        if (std::isnan(want)) {
          EXPECT_TRUE(std::isnan(x[i])) << i;
        } else {
          EXPECT_EQ(x[i], i < 128 ? want : -want) << i;
        }
        EXPECT_EQ(std::signbit(x[i]), i >= 128) << i;
      }
    }
    EXPECT_EQ(float8_largest(format), value_of(format == Float8Format::kE4m3fn ? 0x7e : 0x7b, format));
  }
}

TEST(Float8, EncodesEveryUpperHalfOfAFloatAsTheDefinitionSays) {
  Guarded<float> x(65536);
  for (uint32_t i = 0; i < 65536; ++i) x[i] = std::bit_cast<float>(i << 16);
  for (Float8Format format : kAllFloat8Formats) expect_encodes(x, format);
}

TEST(Float8, EncodesTiesAndTheirNeighboursAsTheDefinitionSays) {
  for (Float8Format format : kAllFloat8Formats) {
    const int last = format == Float8Format::kE4m3fn ? 0x7e : 0x7b;
    Guarded<float> x(6 * last);
    for (int code = 0; code < last; ++code) {
      const auto tie = static_cast<float>((value_of(code, format) + value_of(code + 1, format)) / 2);
      for (int side = 0; side < 2; ++side) {
        const float signed_tie = side == 0 ? tie : -tie;
        x[code * 6 + side * 3] = signed_tie;
        x[code * 6 + side * 3 + 1] = std::nextafter(signed_tie, INFINITY);
        x[code * 6 + side * 3 + 2] = std::nextafter(signed_tie, -INFINITY);
      }
    }
    expect_encodes(x, format);
  }
}

TEST(Float8, EncodesTheEndsOfTheRangeAsTheDefinitionSays) {
  const float ends[] = {448.0f,    463.99f,  464.0f,   464.01f,  480.0f,   1e30f,  57344.0f,
                        61439.99f, 61440.0f, 65536.0f, FLT_MAX,  FLT_MIN,  1e-45f, 0.0f,
                        0x1p-9f,   0x1p-10f, 0x1p-16f, 0x1p-17f, INFINITY, NAN};
  Guarded<float> x(40);
  for (int i = 0; i < 20; ++i) {
    x[2 * i] = ends[i];
    x[2 * i + 1] = -ends[i];
  }
  for (Float8Format format : kAllFloat8Formats) expect_encodes(x, format);
}

TEST(Float8, EverySizeAndAlignmentIsKept) {
  Random random(4);
  for (Float8Format format : kAllFloat8Formats) {
    for (int64_t count = 0; count < 36; ++count) {
      Guarded<float> x(count);
      random.fill_normal(x, 30.0f);
      expect_encodes(x, format);
      Guarded<uint8_t> bytes(count);
      for (int64_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(random.integer(0, 0x7b));
      for (Isa isa : levels()) {
        decode_float8(bytes.data(), count, format, x.data(), isa);
        for (int64_t i = 0; i < count; ++i) EXPECT_EQ(x[i], value_of(bytes[i], format));
      }
    }
  }
}

TEST(Float8, RowScaleIsDefinedForEveryRow) {
  const float row[] = {1.0f, -896.0f, 3.0f};
  EXPECT_EQ(float8_row_scale(row, 3), 2.0f);
  EXPECT_EQ(float8_row_scale(row, 0), FLT_MIN);
  const float zero[] = {0.0f, -0.0f}, denormal[] = {1e-42f}, bad[] = {1.0f, NAN}, endless[] = {-INFINITY};
  EXPECT_EQ(float8_row_scale(zero, 2), FLT_MIN);
  EXPECT_EQ(float8_row_scale(denormal, 1), FLT_MIN);
  EXPECT_TRUE(std::isnan(float8_row_scale(bad, 2)));
  EXPECT_TRUE(std::isnan(float8_row_scale(endless, 1)));
}

}  // namespace
}  // namespace halftone::kernels
