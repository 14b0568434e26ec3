// The epilogue for one element, for the scalar kernels.
#pragma once

#include "kernels/common/epilogue.h"

namespace halftone::kernels {

/// y = activation(sum + bias) + residual, stored as float or bfloat16 at (row, column); never kQuantizedRows.
void finish1(float sum, const Epilogue& e, int64_t row, int64_t column);

}  // namespace halftone::kernels
