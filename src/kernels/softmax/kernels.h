// The kernels of softmax, one file for each instruction set. Contract: softmax.h.
#pragma once

#include "kernels/softmax/softmax.h"

namespace halftone::kernels {

void softmax_row_scalar(const float* x, const float* mask, float scale, int64_t k, float* y);
void softmax_row_avx2(const float* x, const float* mask, float scale, int64_t k, float* y);

}  // namespace halftone::kernels
