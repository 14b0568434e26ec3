// The first step of the flow: operations that a backend runs as one become one fused op, and batch norms go into
// the weights before them.
#pragma once

#include <string>
#include <vector>

#include "halftone/graph/graph_module.h"
#include "halftone/ptq/backend_config.h"
#include "quant/ptq/fused_ops.h"

namespace halftone::ptq {

/// Fuses, in `module` and `fused ops` alike, what patterns with a fuser method take. Gives the layers of folded
/// batch norms. kUnsupported for fuser methods that are only names here.
std::vector<std::string> fuse_ops(GraphModule& module, FusedOpGraph& fused_ops, const BackendConfig& config);

/// Whether a norm's numbers can go into the layer's weight: an inference norm, all of it constant, of
/// matching sizes.
bool can_fold(const GraphModule& module, const Node& layer, const Node& norm,
              const std::vector<std::string>& written);
/// Writes the folded weight and bias into module and graph; the norm's users read the layer instead, and the
/// norm is erased.
void fold_norm(GraphModule& module, Node& layer, Node& norm, const std::vector<std::string>& written);

}  // namespace halftone::ptq
