// Plain 4-bit weights in groups along k: what every int4 operation packs.
#pragma once

#include <cstdint>

#include "kernels/common/packed_block.h"

namespace halftone::kernels {

/// What a weight is counted from: nothing, integers in [-8, 7], or any finite number. Formats that keep the least weight
/// of a group instead of an integer (GGUF's Q4_1 and Q4_K) need the last.
enum class Int4ZeroPoints { kNone, kIntegers, kFloats };

/// Borrowed: w [n][stride] in [-8, 7], scale [n][groups], zero_point [n][groups] in [-8, 7] or float_zero_point [n][groups]
/// or none of both. A weight is (w - zero point) * scale; formats that count from 0 to 15 subtract 8 from both. The last
/// group is shorter if `group` does not divide k: packed blocks have whole groups, filled up with weights of zero. Zero
/// points that are floats want whole groups, because no integer stands for a weight of zero.
struct Int4Weights {
  const int8_t* w = nullptr;
  int64_t stride = 0;
  const float* scale = nullptr;
  const int8_t* zero_point = nullptr;
  int64_t n = 0;
  int64_t k = 0;
  int group = 32;
  const float* float_zero_point = nullptr;

  int64_t groups() const { return (k + group - 1) / group; }
  Int4ZeroPoints zero_points() const {
    if (float_zero_point != nullptr) return Int4ZeroPoints::kFloats;
    return zero_point != nullptr ? Int4ZeroPoints::kIntegers : Int4ZeroPoints::kNone;
  }
  /// Of entry channel * groups() + group.
  float zero_of(int64_t entry) const {
    if (float_zero_point != nullptr) return float_zero_point[entry];
    return zero_point != nullptr ? static_cast<float>(zero_point[entry]) : 0.0f;
  }
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

/// Throws kInvalidArgument for a weight or an integer zero point outside [-8, 7], for a zero point that is infinite or NaN
/// or has a group that is not whole, and for a scale that is negative, infinite or NaN, naming the channel.
void check_int4_channel(const PackedKind& kind, const Int4Weights& weights, int64_t channel);

}  // namespace halftone::kernels
