// The kernels of int4_weight_only_linear, one file for each instruction set. Contract:
// int4_weight_only_linear.h.
#pragma once

#include "kernels/int4_weight_only_linear/int4_weight_only_linear.h"

namespace halftone::kernels {

void int4_expand_scalar(const void* packed, int64_t panel, int64_t k, int64_t steps, float* out);
void int4_expand_avx2(const void* packed, int64_t panel, int64_t k, int64_t steps, float* out);
/// For panels of 16 and of 32.
void int4_multiply_rows_avx2(const void* packed, const float* rows, int count, int64_t panel, int panels,
                             float* sums);
/// Up to 12 rows, panels of 32.
void int4_multiply_rows_avx512vnni(const void* packed, const float* rows, int count, int64_t panel,
                                   int panels, float* sums);
/// The same source through SIMDe, linked only into tests.
void int4_multiply_rows_avx512vnni_emulated(const void* packed, const float* rows, int count, int64_t panel,
                                            int panels, float* sums);
void int4_pack_rows_avx2(const void* packed, const float* x, int64_t stride, int count, int64_t k,
                         int64_t steps, float* rows);

}  // namespace halftone::kernels
