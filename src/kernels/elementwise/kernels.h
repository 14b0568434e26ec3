// The kernels of elementwise, one file for each instruction set. Contract: elementwise.h.
#pragma once

#include "kernels/elementwise/elementwise.h"

namespace halftone::kernels {

void activate_scalar(const float* x, float* y, int64_t count, Activation activation);
void add_scalar(const float* a, const float* b, float* y, int64_t count);
void mul_scalar(const float* a, const float* b, float* y, int64_t count);

void activate_avx2(const float* x, float* y, int64_t count, Activation activation);
void add_avx2(const float* a, const float* b, float* y, int64_t count);
void mul_avx2(const float* a, const float* b, float* y, int64_t count);

}  // namespace halftone::kernels
