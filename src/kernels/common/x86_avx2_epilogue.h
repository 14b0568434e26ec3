// The epilogue for eight neighbouring columns of one row, for files compiled for AVX2 or more. Internal
// linkage: see x86_avx2_math.h.
#pragma once

#include "kernels/common/x86_avx2_math.h"

namespace halftone::kernels {
namespace {  // NOLINT(google-build-namespaces)

/// y = activation(sums + bias) + residual, stored as float or bfloat16 at (row, column). `count` columns
/// exist, at most 8. kQuantizedRows never comes here: a whole row must be known first, so the drivers send it
/// through float scratch.
inline void finish8(__m256 sums, const Epilogue& e, int64_t row, int64_t column, int count) {
  if (count <= 0) return;
  __m256 y = sums;
  if (e.bias != nullptr) y = _mm256_add_ps(y, load_part8(e.bias + column, count));
  y = activate8(y, e.activation);
  if (e.residual != nullptr) {
    y = _mm256_add_ps(y, load_part8(e.residual + row * e.residual_stride + column, count));
  }
  const int64_t offset = row * e.out_stride + column;
  if (e.type == OutputType::kBFloat16) {
    uint16_t* out = static_cast<uint16_t*>(e.out) + offset;
    if (count >= 8) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out), to_bfloat16x8(y));
    } else {
      alignas(16) uint16_t part[8];
      _mm_store_si128(reinterpret_cast<__m128i*>(part), to_bfloat16x8(y));
      for (int i = 0; i < count; ++i) out[i] = part[i];
    }
  } else {
    store_part8(static_cast<float*>(e.out) + offset, y, count);
  }
}

}  // namespace
}  // namespace halftone::kernels
