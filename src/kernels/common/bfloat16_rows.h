// Activations in bfloat16: widened exactly, a stretch at a time, on the way into a linear's packed rows. Not
// for files compiled for a newer instruction set.
#pragma once

#include <bit>
#include <cstdint>

namespace halftone::kernels {

/// Steps of k that are widened at once: they stay in first-level cache until they are packed.
inline constexpr int64_t kWidenedSteps = 256;

inline void widen_bfloat16(const uint16_t* x, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = std::bit_cast<float>(uint32_t{x[i]} << 16);
}

}  // namespace halftone::kernels
