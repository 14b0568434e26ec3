// The arguments of int4_dynamic_linear's kernels, and the kernels, one file for each instruction set.
// Contract: int4_dynamic_linear.h.
#pragma once

#include "kernels/int4_dynamic_linear/int4_dynamic_linear.h"

namespace halftone::kernels {

/// Packed activations: for a block of `count` rows and 32 k one record,
///   count * 32 bytes  [8 quads][count][4] qx
///   count int32       two 16-bit halves: -8 · Σ qx of k % 4 in {0, 1} and in {2, 3}
///   count int32       Σ qx
///   count float       sx
inline constexpr int kInt4DynamicRowBytes = 32 + 12;

/// Panels that a kernel gets at once, at most: as many streams from memory, which a core reads faster than
/// one.
inline constexpr int kInt4DynamicPanels = 4;

struct Int4DynamicStep {
  const uint8_t* rows;  ///< records of the block, k / 32 of them
  int count;            ///< rows in the block
  const Int4DynamicPacked* weights;
  int64_t panel;  ///< the first
  int panels;     ///< 1 to kInt4DynamicPanels
  float* sums;    ///< [panels][count][tile_n], aligned to 64: written
};

void int4_dynamic_prepare_scalar(const float* x, int64_t k, int row, int count, uint8_t* records);
void int4_dynamic_multiply_scalar(const Int4DynamicStep& step);

void int4_dynamic_prepare_avx2(const float* x, int64_t k, int row, int count, uint8_t* records);
void int4_dynamic_multiply_avx2(const Int4DynamicStep& step);

void int4_dynamic_multiply_avx512vnni(const Int4DynamicStep& step);
/// The same source through SIMDe, linked only into tests.
void int4_dynamic_multiply_avx512vnni_emulated(const Int4DynamicStep& step);

}  // namespace halftone::kernels
