// Quantized layers as they stand in a graph: how their tensors are named, and which config a halftone::* node
// has.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "halftone/graph/graph.h"
#include "halftone/quant/quantize.h"

namespace halftone {

/// The name of one tensor of a quantized weight: "fc.weight:scale". `base` is the qualified name of the
/// weight that it stands for, with ":2", ":3", … behind it where one weight is quantized in several ways.
/// Python's modules have no colons in the names of parameters; if a model has one all the same, the next
/// free number is taken.
std::string part_name(std::string_view base, std::string_view part);

/// The layer that a tensor belongs to: "fc" for "fc.weight", "fc.weight:scale" and "fc.weight:2:scale"; names
/// that do not end in ".weight" stay whole: "attention.in_proj_weight".
std::string layer_of_tensor(std::string_view target);

/// A node that multiplies by a quantized weight or looks up its rows.
struct QuantizedNode {
  LayerInfo layer;
  QuantConfig config;             ///< of an embedding: without what concerns activations
  const Value* weight = nullptr;  ///< its first tensor; the others hold scales and zero points
};

/// A convolution or linear of static int8, which halftone::lower made: it has no config.
bool is_static_int8_layer(const Node& node);

/// Nothing for other nodes. kInvalidArgument, naming the node, if its operands fit no config.
std::optional<QuantizedNode> try_quantized_node(const Node& node);

}  // namespace halftone
