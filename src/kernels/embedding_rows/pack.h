// Two 4-bit integers a byte: the layout of embedding_rows' int4 tables.
#pragma once

#include <cstdint>

namespace halftone::kernels {

/// q [rows][stride] in [-8, 7] to bytes [rows][(width + 1) / 2]: column c in the lower four bits of byte c /
/// 2 if c is even, in the upper ones if it is odd; an unused half is 0. Throws kInvalidArgument, naming row
/// and column, for an integer that four bits do not hold.
void pack_int4_rows(const int8_t* q, int64_t stride, int64_t rows, int64_t width, uint8_t* bytes);

}  // namespace halftone::kernels
