// The time of each layer of a model.
#pragma once

#include <map>
#include <string>

#include "common/console.h"
#include "common/inputs.h"

namespace halftone::cli {

struct LayerTimes {
  std::map<std::string, double> milliseconds;  ///< by layer name; "" for nodes of no layer
  double total_ms = 0;                         ///< the sum of all layers
  int runs = 0;

  /// Between 0 and 1; the shares of all layers add up to 1.
  double share(const std::string& layer) const;
};

/// Runs the model several times after a warm-up, with the time of each node taken, and gives for each layer
/// the median over the runs of the sum of its nodes. Every run starts from a reset state.
LayerTimes measure_layers(Session& session, const InputSet& inputs, const Console& console);

}  // namespace halftone::cli
