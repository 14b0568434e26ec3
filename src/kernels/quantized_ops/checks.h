// Checks of quantization parameters, shared by quantized_ops' drivers.
#pragma once

#include <cfloat>
#include <cmath>

#include "base/errors.h"
#include "kernels/quantized_ops/quantized_ops.h"

namespace halftone::kernels {

inline void check_quant_params(const char* operation, const QuantParams& p, bool is_signed) {
  if (!(p.scale >= FLT_MIN) || !std::isfinite(p.scale))
    fail(ErrorCode::kInvalidArgument, "{}: the scale is {}", operation, p.scale);
  const int least = is_signed ? -128 : 0;
  if (p.zero_point < least || p.zero_point > least + 255)
    fail(ErrorCode::kInvalidArgument, "{}: the zero point is {}, outside of [{}, {}]", operation,
         p.zero_point, least, least + 255);
}

inline void check_quant_target(const char* operation, const QuantTarget& t) {
  check_quant_params(operation, t.params, t.is_signed);
  const int least = t.is_signed ? -128 : 0;
  if (t.lo < least || t.hi > least + 255 || t.lo > t.hi)
    fail(ErrorCode::kInvalidArgument, "{}: the limits are {} and {}", operation, t.lo, t.hi);
}

}  // namespace halftone::kernels
