// The kernels of quantize_rows, one for each instruction set; the contract is in quantize_rows.h.
#pragma once

#include "kernels/quantize_rows/quantize_rows.h"

namespace halftone::kernels {

RowScale quantize_row_scalar(const float* x, int64_t k, RowFormat format, uint8_t* q);
RowScale quantize_row_avx2(const float* x, int64_t k, RowFormat format, uint8_t* q);

}  // namespace halftone::kernels
