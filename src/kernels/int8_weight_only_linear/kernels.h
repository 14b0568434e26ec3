// The kernels of int8_weight_only_linear, one file for each instruction set. Contract:
// int8_weight_only_linear.h.
#pragma once

#include "kernels/int8_weight_only_linear/int8_weight_only_linear.h"

namespace halftone::kernels {

void int8_expand_scalar(const void* packed, int64_t panel, int64_t k, int64_t steps, float* out);
void int8_expand_avx2(const void* packed, int64_t panel, int64_t k, int64_t steps, float* out);
/// For panels of 16 and of 32.
void int8_multiply_rows_avx2(const void* packed, const float* rows, int count, int64_t panel, int panels,
                             float* sums);

/// As Fp32LinearKernel::multiply, on panels of bytes; the scales are left to the sums.
void int8_multiply_avx2(const Fp32LinearStep& step);
void int8_multiply_avx512vnni(const Fp32LinearStep& step);
/// The same source through SIMDe, linked only into tests.
void int8_multiply_avx512vnni_emulated(const Fp32LinearStep& step);

}  // namespace halftone::kernels
