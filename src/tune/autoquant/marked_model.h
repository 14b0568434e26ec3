// The layers of a graph that autoquant decides about, and which of them it decides about as one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "halftone/graph/graph_module.h"
#include "halftone/quant/quantize.h"
#include "quant/graph/find_layers.h"

namespace halftone::aq {

/// Linears that read one value: run as one if they have one scheme.
struct Site {
  const Value* x = nullptr;          ///< what they read, before reshapes
  std::vector<const Node*> linears;  ///< in the graph's order
};

/// Layers that are decided about together: those that share a site.
struct Group {
  std::vector<size_t> layers;  ///< in the model's order
  std::vector<Site> sites;     ///< more than one if a layer is used several times
};

/// A copy of a graph with its marks; nodes and values are those of that copy.
struct MarkedModel {
  std::shared_ptr<GraphModule> module;
  std::vector<GraphLayer> layers;  ///< in the model's order
  std::vector<Group> groups;       ///< in the order of their first layer
  int64_t weights = 0;             ///< of all layers
};

/// `include`, `exclude`: as in QuantizeOptions. `type`: the model's, for the error if nothing is left:
/// kInvalidArgument "NotAutoquantizable: …".
MarkedModel mark(const GraphModule& module, const std::string& include, const std::string& exclude,
                 const std::string& type);

/// Throws that error.
[[noreturn]] void fail_not_autoquantizable(const std::string& type);

/// Keeps only the layers of these names, and the groups that are left.
void keep_only(MarkedModel& model, const std::vector<std::string>& names);

/// What the linear multiplies.
Value* input_of(const Node& linear);
/// The value before reshapes.
const Value* before_reshapes(const Value* value);

}  // namespace halftone::aq
