// Plain 4-bit weights in groups along k: what every int4 operation packs.
#pragma once

#include <cstdint>

#include "kernels/common/packed_block.h"

namespace halftone::kernels {

/// Borrowed: w [n][stride] in [-8, 7], scale [n][groups], zero_point [n][groups] in [-8, 7] or none. A
/// weight is (w - zero_point) * scale; formats that count from 0 to 15 subtract 8 from both. The last group
/// is shorter if `group` does not divide k: packed blocks have whole groups, filled up with weights of
/// zero.
struct Int4Weights {
  const int8_t* w = nullptr;
  int64_t stride = 0;
  const float* scale = nullptr;
  const int8_t* zero_point = nullptr;
  int64_t n = 0;
  int64_t k = 0;
  int group = 32;

  int64_t groups() const { return (k + group - 1) / group; }
  /// qw of column k of whole groups: beyond the last weight, what stands for zero.
  int padded_weight(int64_t channel, int64_t column) const {
    if (column < k) return w[channel * stride + column];
    return zero_point != nullptr ? zero_point[channel * groups() + column / group] : 0;
  }
};

/// k filled up to whole groups. The group is allowed, and k at most what packed_weight_count takes.
inline int64_t int4_whole_groups(int64_t k, int group) {
  return (k + group - 1) / group * group;
}

/// Why this group size cannot be used, or nullptr.
const char* refuse_int4_group(int group);

/// Throws kInvalidArgument with the reason of refuse_int4_group, and for a k that whole groups do not fit.
void check_int4_group(const char* operation, int64_t k, int group);

/// Throws kInvalidArgument for a weight or zero point outside [-8, 7] and for a scale that is negative,
/// infinite or NaN, naming the channel.
void check_int4_channel(const PackedKind& kind, const Int4Weights& weights, int64_t channel);

}  // namespace halftone::kernels
