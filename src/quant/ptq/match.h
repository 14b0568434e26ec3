// Finds patterns of a backend config among the operations of a graph, in the order of torch.ao: from the last
// operation backwards, patterns with more operations first, then as the config lists them.
#pragma once

#include <vector>

#include "halftone/ptq/backend_config.h"
#include "quant/ptq/fused_ops.h"

namespace halftone::ptq {

struct PatternMatch {
  const BackendPatternConfig* config = nullptr;
  std::vector<FusedOp*> fused_ops;  ///< in order of execution, without what "*" stands for
  FusedOp* root = nullptr;          ///< where the pattern begins: the product, the sum

  FusedOp* last() const { return fused_ops.back(); }
  /// Activations that come from outside, each once, the root's first.
  std::vector<Value*> inputs() const;
};

/// The configs in the order in which they are tried. Pointers are into `configs`.
std::vector<const BackendPatternConfig*> in_order_of_matching(
    const std::vector<BackendPatternConfig>& configs);

/// Each operation is in one match at most. In order of execution.
std::vector<PatternMatch> find_matches(const FusedOpGraph& graph,
                                       const std::vector<const BackendPatternConfig*>& configs);

}  // namespace halftone::ptq
