// How much memory a decoder takes, before it is loaded.
#pragma once

#include "decoder/source/config.h"
#include "decoder/source/weight_source.h"

namespace halftone {

/// kInvalidArgument, with both figures and what makes the model smaller, if loading takes more memory than is free.
void require_memory_for(const WeightSource& weights, const DecoderConfig& config, int64_t context);

}  // namespace halftone
