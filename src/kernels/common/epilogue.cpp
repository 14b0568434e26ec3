#include "kernels/common/epilogue.h"

#include <bit>
#include <cmath>

#include "kernels/common/scalar_epilogue.h"

namespace halftone::kernels {

float activate(float x, Activation activation) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return x < 0.0f ? 0.0f : x;  // written so that NaN falls through
    case Activation::kGeluErf:
      return static_cast<float>(
          x * (0.5 * std::erfc(x * -0.70710678118654752)));  // the tail needs the exact product
    case Activation::kGeluTanh:
      return x / (1.0f + std::exp(-1.5957691216057308f * (x + 0.044715f * x * x * x)));
    case Activation::kSilu:
      return x / (1.0f + std::exp(-x));
  }
  return x;
}

uint16_t to_bfloat16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if (x != x) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float from_bfloat16(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

void finish1(float sum, const Epilogue& e, int64_t row, int64_t column) {
  if (e.bias != nullptr) sum += e.bias[column];
  float y = activate(sum, e.activation);
  if (e.residual != nullptr) y += e.residual[row * e.residual_stride + column];
  const int64_t at = row * e.out_stride + column;
  if (e.type == OutputType::kBFloat16) {
    static_cast<uint16_t*>(e.out)[at] = to_bfloat16(y);
  } else {
    static_cast<float*>(e.out)[at] = y;
  }
}

}  // namespace halftone::kernels
