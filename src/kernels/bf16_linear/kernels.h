// The kernels of bf16_linear, one file for each instruction set; what is not here is fp32_linear's. Contract:
// bf16_linear.h.
#pragma once

#include "kernels/bf16_linear/bf16_linear.h"

namespace halftone::kernels {

void bf16_multiply_scalar(const Fp32LinearStep& step);
void bf16_multiply_avx2(const Fp32LinearStep& step);
void bf16_multiply_avx512vnni(const Fp32LinearStep& step);
/// The same source through SIMDe, linked only into tests.
void bf16_multiply_avx512vnni_emulated(const Fp32LinearStep& step);

}  // namespace halftone::kernels
