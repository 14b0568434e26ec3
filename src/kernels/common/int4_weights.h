// Plain 4-bit weights in groups along k: what every int4 operation packs.
#pragma once

#include <cstdint>

#include "kernels/common/packed_block.h"

namespace halftone::kernels {

/// Borrowed: w [n][stride] in [-8, 7], scale [n][k / group], zero_point [n][k / group] in [-8, 7] or none. A
/// weight is (w - zero_point) * scale; formats that count from 0 to 15 subtract 8 from both.
struct Int4Weights {
  const int8_t* w = nullptr;
  int64_t stride = 0;
  const float* scale = nullptr;
  const int8_t* zero_point = nullptr;
  int64_t n = 0;
  int64_t k = 0;
  int group = 32;
};

/// Why this group size cannot be used with k, or nullptr.
const char* refuse_int4_group(int64_t k, int group);

/// Throws kInvalidArgument with the reason of refuse_int4_group.
void check_int4_group(const char* operation, int64_t k, int group);

/// Throws kInvalidArgument for a weight or zero point outside [-8, 7] and for a scale that is negative,
/// infinite or NaN, naming the channel.
void check_int4_channel(const PackedKind& kind, const Int4Weights& weights, int64_t channel);

}  // namespace halftone::kernels
