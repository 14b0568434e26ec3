// quantize_rows in plain C++, for every machine: the reference of the other kernels.
#include <cfloat>
#include <cmath>

#include "kernels/quantize_rows/kernels.h"

namespace halftone::kernels {
namespace {

struct Range {
  float lo = 0.0f;
  float hi = 0.0f;
  bool finite = true;
};

Range range_of(const float* x, int64_t k) {
  Range range;
  for (int64_t i = 0; i < k; ++i) {
    range.finite = range.finite && std::isfinite(x[i]);
    range.lo = x[i] < range.lo ? x[i] : range.lo;
    range.hi = x[i] > range.hi ? x[i] : range.hi;
  }
  return range;
}

RowScale not_finite(int64_t k, uint8_t* q) {
  for (int64_t i = 0; i < k; ++i) q[i] = 0;
  return {NAN, 0};
}

float clamp_scale(float scale) {
  return scale < FLT_MIN ? FLT_MIN : scale;
}

float clamp(float v, float lo, float hi) {
  return v < lo ? lo : v > hi ? hi : v;
}

}  // namespace

RowScale quantize_row_scalar(const float* x, int64_t k, RowFormat format, uint8_t* q) {
  const Range range = range_of(x, k);
  if (!range.finite) return not_finite(k, q);
  if (format == RowFormat::kS8) {
    const float largest = -range.lo > range.hi ? -range.lo : range.hi;
    const float scale = clamp_scale(largest / 127.0f);
    const float inverse = 1.0f / scale;
    for (int64_t i = 0; i < k; ++i) {
      q[i] =
          static_cast<uint8_t>(static_cast<int8_t>(clamp(std::nearbyint(x[i] * inverse), -127.0f, 127.0f)));
    }
    return {scale, 0};
  }
  const float scale = clamp_scale(range.hi / 255.0f - range.lo / 255.0f);
  const float inverse = 1.0f / scale;
  const float zero_point = clamp(std::nearbyint(-range.lo * inverse), 0.0f, 255.0f);
  for (int64_t i = 0; i < k; ++i) {
    q[i] = static_cast<uint8_t>(clamp(std::nearbyint(x[i] * inverse) + zero_point, 0.0f, 255.0f));
  }
  return {scale, static_cast<int32_t>(zero_point)};
}

}  // namespace halftone::kernels
