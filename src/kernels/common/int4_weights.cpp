#include "kernels/common/int4_weights.h"

#include <cmath>

#include "base/errors.h"

namespace halftone::kernels {

const char* refuse_int4_group(int group) {
  const bool allowed = group == 32 || group == 64 || group == 128 || group == 256;
  return allowed ? nullptr : "the group size is not 32, 64, 128 or 256";
}

void check_int4_group(const char* operation, int64_t k, int group) {
  if (const char* reason = refuse_int4_group(group))
    fail(ErrorCode::kInvalidArgument, "{}: {} but {}", operation, reason, group);
  if (k < 0 || k > INT64_MAX - group)
    fail(ErrorCode::kInvalidArgument, "{}: {} inputs cannot be cut into groups", operation, k);
}

void check_int4_channel(const PackedKind& kind, const Int4Weights& weights, int64_t c) {
  const int64_t groups = weights.groups();
  for (int64_t g = 0; g < groups; ++g) {
    check_packed_scale(kind, weights.scale[c * groups + g], c, g);
    const float zero = weights.zero_of(c * groups + g);
    const bool floats = weights.zero_points() == Int4ZeroPoints::kFloats;
    if (floats ? !std::isfinite(zero) : zero < -8 || zero > 7) {
      fail(ErrorCode::kInvalidArgument, "{}: the zero point of channel {}, group {} is {}", kind.operation, c,
           g, zero);
    }
    if (floats && weights.k % weights.group != 0) {
      fail(ErrorCode::kInvalidArgument,
           "{}: {} inputs are not whole groups of {}, as zero points that are floats want", kind.operation,
           weights.k, weights.group);
    }
  }
  for (int64_t k = 0; k < weights.k; ++k) {
    const int w = weights.w[c * weights.stride + k];
    if (w < -8 || w > 7)
      fail(ErrorCode::kInvalidArgument, "{}: weight {} of channel {} is {}", kind.operation, k, c, w);
  }
}

}  // namespace halftone::kernels
