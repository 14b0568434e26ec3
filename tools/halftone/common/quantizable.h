// The share of a model that could be quantized.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "halftone/cli/summary.h"

namespace halftone::cli {

/// The layers of one kind whose weights are floating point, and all their parameters (biases too).
struct QuantizableKind {
  std::string_view name;  ///< "linears", "embeddings", "convolutions"
  int64_t layers = 0;
  int64_t bytes = 0;
};

/// All kinds, in this order, those without layers too.
std::vector<QuantizableKind> count_quantizable(const ModelSummary& summary);

}  // namespace halftone::cli
