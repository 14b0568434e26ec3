// The kernels of norm, one file for each instruction set. Contract: norm.h.
#pragma once

#include "kernels/norm/norm.h"

namespace halftone::kernels {

void norm_row_scalar(const NormRow& row);
void norm_row_avx2(const NormRow& row);

}  // namespace halftone::kernels
