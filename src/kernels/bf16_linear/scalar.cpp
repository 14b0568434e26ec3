// bf16_linear in plain C++, for every machine: the reference of the other kernels.
#include "kernels/bf16_linear/kernels.h"
#include "kernels/fp32_linear/scalar_multiply.h"

namespace halftone::kernels {

void bf16_multiply_scalar(const Fp32LinearStep& s) {
  multiply_scalar(s, [](const unsigned char* panel, int64_t at) {
    constexpr int64_t kHalf = kScalarPanel / 2;
    const int64_t column = at % kScalarPanel;
    const int64_t place = column < kHalf ? 2 * column : 2 * (column - kHalf) + 1;  // see pack.h
    return from_bfloat16(reinterpret_cast<const uint16_t*>(panel)[at - column + place]);
  });
}

}  // namespace halftone::kernels
