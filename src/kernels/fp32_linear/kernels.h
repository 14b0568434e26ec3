// The kernels of fp32_linear, one file for each instruction set. Contract: fp32_linear.h.
#pragma once

#include "kernels/fp32_linear/fp32_linear.h"

namespace halftone::kernels {

void fp32_pack_rows_scalar(const float* x, int64_t stride, int count, int64_t k, float* packed);
void fp32_multiply_scalar(const Fp32LinearStep& step);
void fp32_finish_scalar(const Fp32LinearTile& tile);

void fp32_pack_rows_avx2(const float* x, int64_t stride, int count, int64_t k, float* packed);
void fp32_multiply_avx2(const Fp32LinearStep& step);
void fp32_finish_16_avx2(const Fp32LinearTile& tile);
void fp32_finish_32_avx2(const Fp32LinearTile& tile);

void fp32_multiply_avx512vnni(const Fp32LinearStep& step);
/// The same source through SIMDe, linked only into tests.
void fp32_multiply_avx512vnni_emulated(const Fp32LinearStep& step);

}  // namespace halftone::kernels
