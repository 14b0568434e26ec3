// The weights that quantize_ left alone, by kind: so that a model of which most stayed as it was is not taken
// for small.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "halftone/quant/quantize.h"

namespace halftone {

/// A stored weight that stayed as it was, though the caller did not ask for that.
struct UntouchedWeight {
  std::string kind;       ///< as in LeftAlone
  const void* layer = 0;  ///< what tells layers apart: weights of one layer count as one
  int64_t bytes = 0;
};

inline constexpr std::string_view kOtherWeight = "other weight";

/// Most bytes first. `config`: what the model was to become.
std::vector<LeftAlone> group_left_alone(const std::vector<UntouchedWeight>& weights, int64_t model_bytes,
                                        const QuantConfig& config);

/// "20 convolutions (44.6 MB, 99.8 % of the bytes) are not touched by this scheme: halftone ptq".
std::string describe(const LeftAlone& kind);

}  // namespace halftone
