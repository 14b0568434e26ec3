// Panels of bytes with one factor for each column (packed_block.h): expanded to floats, or multiplied with
// few rows on the way. Weights::load gives the 16 floats that 16 bytes stand for, before their factors.
// Internal linkage: see x86_avx2_math.h.
#pragma once

#include "kernels/common/packed_block.h"
#include "kernels/common/x86_avx2_fused_rows.h"

namespace halftone::kernels {
namespace {  // NOLINT(google-build-namespaces)

/// Fp32Panels::expand on a PackedPanels.
template <typename Weights>
void expand_factored(const void* packed, int64_t panel, int64_t k, int64_t steps, float* out) {
  const auto& p = *static_cast<const PackedPanels*>(packed);
  const unsigned char* q = p.elements + panel * p.panel_bytes + k * p.tile_n;
  const float* factor = p.factor + panel * p.tile_n;
  for (int c = 0; c < p.tile_n; c += 16) {
    const __m256 f0 = _mm256_loadu_ps(factor + c), f1 = _mm256_loadu_ps(factor + c + 8);
    for (int64_t i = 0; i < steps; ++i) {
      const int64_t at = i * p.tile_n + c;
      _mm_prefetch(reinterpret_cast<const char*>(q + at) + 4096, _MM_HINT_T0);
      __m256 w0, w1;
      Weights::load(q + at, w0, w1);
      _mm256_storeu_ps(out + at, _mm256_mul_ps(w0, f0));
      _mm256_storeu_ps(out + at + 8, _mm256_mul_ps(w1, f1));
    }
  }
}

/// Fp32Panels::multiply_rows on a PackedPanels; the factors are applied to the sums.
template <typename Weights>
void multiply_rows_factored(const void* packed, const float* rows, int count, int64_t panel, int panels,
                            float* sums) {
  const auto& p = *static_cast<const PackedPanels*>(packed);
  const unsigned char* q = p.elements + panel * p.panel_bytes;
  for (int c = 0; c < p.tile_n; c += 16) {
    fused_rows<Weights>({q + c, p.tile_n, p.panel_bytes, panels, p.k, sums + c, p.tile_n}, rows, count);
  }
  for (int i = 0; i < panels * count; ++i) {
    const float* factor = p.factor + (panel + i / count) * p.tile_n;
    for (int c = 0; c < p.tile_n; c += 8) {
      float* at = sums + i * p.tile_n + c;
      _mm256_storeu_ps(at, _mm256_mul_ps(_mm256_loadu_ps(at), _mm256_loadu_ps(factor + c)));
    }
  }
}

}  // namespace
}  // namespace halftone::kernels
