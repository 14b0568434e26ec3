// A decoder as a graph that sequences run.
#pragma once

#include <memory>

#include "decoder/model.h"
#include "halftone/graph/graph_module.h"
#include "halftone/quant/quantize.h"

namespace halftone {

/// Ready to run; shared by all sequences.
struct CompiledDecoder {
  std::shared_ptr<const GraphModule> module;  ///< DecoderModel::forward
  std::shared_ptr<const GraphExecutor> executor;
  int64_t context = 0;  ///< places of the cache
  int64_t window = 0;   ///< of layers that take the fourth input; 0: there are none

  /// The inputs of a call: tokens [1, t] that stand at first, first + 1, …, against so many places of the cache.
  std::vector<c10::IValue> inputs(at::Tensor tokens, int64_t first, int64_t places) const;
};

/// DecoderModel::forward for any number of tokens and of places of the cache. The cache is state of the graph.
std::shared_ptr<GraphModule> capture_decoder(const DecoderConfig& config, DecoderWeights weights,
                                             int64_t context);

/// Its linears and its embedding, but not the tables of positions, which are read as an embedding is.
QuantizeReport quantize_decoder(GraphModule& module, const QuantConfig& scheme);

}  // namespace halftone
