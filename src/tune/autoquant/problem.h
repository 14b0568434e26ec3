// The unit of measurement: the linears of a site with their fused neighbours, cut out of the graph for one
// shape.
#pragma once

#include <ATen/core/ivalue.h>

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tune/autoquant/marked_model.h"

namespace halftone::aq {

/// What a value was in a call: a tensor of these sizes, or a number.
struct Seen {
  std::vector<int64_t> sizes, strides;
  c10::ScalarType dtype = c10::ScalarType::Float;
  std::optional<int64_t> number;
};
using SeenValues = std::unordered_map<const Value*, Seen>;

/// A site's linears with what the compiler would fuse with them: the norm before them (and the sum before
/// that), activations, gates and residuals behind them. In the graph's order.
struct Neighbourhood {
  std::vector<const Node*> nodes;
  /// Plain linears of one input, which the compiler puts on top of each other.
  bool joined = false;
  /// A linear that makes what these read, itself or through the activation that is the first of `nodes`:
  /// it quantizes its result for int8 linears as it writes it. The problem has a small one in its place.
  const Node* maker = nullptr;
};
Neighbourhood neighbourhood_of(const Graph& graph, const Site& site);

inline constexpr const char* kMakerLayer = "maker";

/// A small model of its own. Two problems with the same key take the same time.
struct Problem {
  std::shared_ptr<GraphModule> module;
  std::vector<c10::IValue> inputs;
  std::string key;         ///< a readable sentence and a hash of the graph: "layer_norm, linear 96x64 …"
  int64_t weights = 0;     ///< of its linears
  bool has_maker = false;  ///< the linear named kMakerLayer, which no scheme is for
};

/// `seen`: of one call. The weights of the model's other layers are part of the key: they decide what the
/// caches hold when a call comes to this one. Inputs are made up, the same each time. kUnsupported if a
/// number that the nodes need was not seen.
Problem cut_out(const MarkedModel& model, const Neighbourhood& part, const SeenValues& seen);

/// Values that a problem takes from outside of it: its inputs, and numbers. What a shape is known by.
std::vector<const Value*> outside_values(const GraphModule& module, const Neighbourhood& part);

}  // namespace halftone::aq
