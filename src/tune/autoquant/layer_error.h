// The error of a layer's output with a scheme against fp32, on recorded activations.
#pragma once

#include <optional>
#include <string>

#include "tune/autoquant/recorder.h"

namespace halftone::aq {

struct LayerError {
  std::optional<double> error;  ///< 1 - cosine, the worst over shapes; nothing: refused
  std::string refusal;          ///< what the format or the operator says
};

/// Quantizes the layer's weight and multiplies the recorded rows with it, through the scheme's own operator.
LayerError layer_error(const MarkedModel& model, const Recorder& recorder, const GraphLayer& layer,
                       const QuantConfig& config);

}  // namespace halftone::aq
