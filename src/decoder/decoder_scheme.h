// What a decoder's scheme does to its weights.
#pragma once

#include <optional>
#include <string>

#include "halftone/graph/graph_module.h"
#include "halftone/quant/quantize.h"

namespace halftone {

/// A name of the table of schemes: a config, or one that keeps the 4-bit weights of a file.
class DecoderScheme {
 public:
  /// Throws as named_scheme() does, and kUnsupported for schemes that need data or measurements.
  explicit DecoderScheme(const std::string& name);

  /// Quantizes the linears and the embedding, but not the tables of positions, which are read as an embedding is.
  /// Nothing to report where nothing is quantized.
  std::optional<QuantizeReport> apply(GraphModule& module) const;

 private:
  std::optional<QuantConfig> config_;
  Int4Activations activations_ = Int4Activations::kFloat;  ///< where there is no config
};

}  // namespace halftone
