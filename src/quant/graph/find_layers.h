// Finds the layers of a graph that quantize_ looks at: linears in all spellings, convolutions, embeddings.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "halftone/graph/graph_module.h"
#include "halftone/quant/quantize.h"
#include "quant/select/layer_chooser.h"

namespace halftone {

/// How a node writes a linear down; decides which operands it has and what stands around the new node.
/// kConvolution: the node stays, and only its weight is stored in fewer bits.
enum class LinearForm { kLinear, kAddmm, kMatmul, kConv1d, kConvolution, kEmbedding };

struct LayerUse {
  Node* node = nullptr;
  LinearForm form = LinearForm::kLinear;
};

/// One weight, and all nodes that use it in the same way.
struct GraphLayer {
  LayerInfo info;
  LayerState state;
  std::vector<LayerUse> uses;  ///< nodes to rewrite; empty if the layer cannot be quantized or is already
  at::Tensor
      matrix;  ///< [n, k]: a view of the stored weight (of a convolution: perhaps a copy), before `dtype`
  at::Tensor weight;                               ///< of a convolution: in its own shape
  c10::ScalarType dtype = c10::ScalarType::Float;  ///< what the graph casts the weight to
  std::string base;                                ///< of the names of its quantized tensors
  int64_t bytes = 0;                               ///< of the weight as it is now
};

/// In the order of first use. The nodes are those of module.graph(), which must be the module's own
/// (mutable_graph() has been called).
std::vector<GraphLayer> find_layers(const GraphModule& module);

}  // namespace halftone
