// Recognises one node as a linear, a convolution or an embedding, whatever its operands are.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "halftone/graph/graph.h"
#include "quant/graph/find_layers.h"

namespace halftone {

/// A node that may be a layer, if the operand turns out to be a stored weight.
struct MatchedLayer {
  LinearForm form = LinearForm::kLinear;
  std::string_view kind;  ///< of LayerInfo
  const Value* weight = nullptr;
  bool transposed = false;  ///< the operand is [k, n]
  std::string obstacle;     ///< why this node cannot be quantized, or ""
  std::string convolution;  ///< of a convolution that is not a linear: which one it is
};

std::optional<MatchedLayer> try_match_layer(const Node& node);

}  // namespace halftone
