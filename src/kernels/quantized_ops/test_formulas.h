// The formulas of quantized_ops, written once more for its tests, in the order the contracts give.
#pragma once

#include <cmath>

#include "kernels/common/test_support.h"
#include "kernels/quantized_ops/quantized_images.h"

namespace halftone::kernels::testing {

inline int as_value(uint8_t q, bool is_signed) {
  return is_signed ? static_cast<int8_t>(q) : q;
}

inline float dequantized(uint8_t q, const QuantParams& p, bool is_signed = false) {
  return static_cast<float>(as_value(q, is_signed) - p.zero_point) * p.scale;
}

inline uint8_t rounded_byte(float f, const QuantTarget& t) {
  if (std::isnan(f)) return static_cast<uint8_t>(t.hi);
  const float moved = f + static_cast<float>(t.params.zero_point);
  return static_cast<uint8_t>(
      static_cast<int>(std::clamp<double>(std::nearbyint(double{moved}), t.lo, t.hi)));
}

inline uint8_t quantized(float x, const QuantTarget& t) {
  return rounded_byte(x * (1.0f / t.params.scale), t);
}

/// Targets that differ in everything.
inline std::vector<QuantTarget> some_targets() {
  return {{{0.05f, 0}, 0, 255, false},   {{0.0173f, 128}, 0, 255, false}, {{0.3f, 7}, 7, 127, false},
          {{1.0f, 255}, 10, 200, false}, {{0.02f, 0}, -128, 127, true},   {{0.11f, -100}, -64, 64, true}};
}

inline void fill_bytes(Guarded<uint8_t>& bytes, Random& random) {
  for (int64_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(random.integer(0, 255));
}

}  // namespace halftone::kernels::testing
