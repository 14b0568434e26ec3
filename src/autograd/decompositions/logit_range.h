// The range of the operand of logit: from eps to 1 - eps.
#pragma once

#include <c10/core/ScalarType.h>

namespace halftone {

/// The bounds as ATen's kernels have them: rounded to the operand's type, 1 - eps too. Near 1 the logit makes
/// a rounding error of the bound a thousand times as large.
struct LogitRange {
  LogitRange(c10::ScalarType type, double eps)
      : low(type == c10::kDouble ? eps : static_cast<float>(eps)),
        high(type == c10::kDouble ? 1 - eps : 1 - static_cast<float>(eps)) {}
  double low;
  double high;
};

}  // namespace halftone
