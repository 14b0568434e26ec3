#include "kernels/common/int4_weights.h"

#include "base/errors.h"

namespace halftone::kernels {

const char* refuse_int4_group(int64_t k, int group) {
  if (group != 32 && group != 64 && group != 128 && group != 256)
    return "the group size is not 32, 64, 128 or 256";
  return k % group == 0 ? nullptr : "the group size does not divide k";
}

void check_int4_group(const char* operation, int64_t k, int group) {
  if (const char* reason = refuse_int4_group(k, group)) {
    fail(ErrorCode::kInvalidArgument, "{}: {} ({} and {})", operation, reason, group, k);
  }
}

void check_int4_channel(const PackedKind& kind, const Int4Weights& weights, int64_t c) {
  const int64_t groups = weights.k / weights.group;
  for (int64_t g = 0; g < groups; ++g) {
    check_packed_scale(kind, weights.scale[c * groups + g], c, g);
    const int zero = weights.zero_point != nullptr ? weights.zero_point[c * groups + g] : 0;
    if (zero < -8 || zero > 7) {
      fail(ErrorCode::kInvalidArgument, "{}: the zero point of channel {}, group {} is {}", kind.operation, c,
           g, zero);
    }
  }
  for (int64_t k = 0; k < weights.k; ++k) {
    const int w = weights.w[c * weights.stride + k];
    if (w < -8 || w > 7)
      fail(ErrorCode::kInvalidArgument, "{}: weight {} of channel {} is {}", kind.operation, k, c, w);
  }
}

}  // namespace halftone::kernels
