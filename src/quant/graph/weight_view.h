// Finds the stored tensor behind a weight operand, through transpositions, slices, casts and other views.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <unordered_map>

#include "halftone/graph/graph_module.h"

namespace halftone {

/// A weight operand as a view of a tensor that the module stores.
struct WeightView {
  size_t input = 0;   ///< of the graph: the parameter, buffer or constant
  at::Tensor tensor;  ///< the operand's elements, in its shape, as a view of the stored tensor
  c10::ScalarType dtype = c10::ScalarType::Float;  ///< what casts make of it
  bool expanded = false;  ///< `tensor` is a matrix that the operand repeats in a leading dimension
};

/// Follows operands back to stored tensors. Reads the graph as it is when asked; remembers answers.
class WeightTracer {
 public:
  explicit WeightTracer(const GraphModule& module);

  /// Nothing if the operand is not a view of a stored tensor.
  std::optional<WeightView> trace(const Value* value);
  /// The parameter, buffer or constant that the operand is computed from, if it is computed from such only
  /// (nothing that a caller gives): the index of the first such input.
  std::optional<size_t> constant_root(const Value* value) const;

 private:
  std::optional<WeightView> trace_input(const Value& value) const;
  std::optional<WeightView> trace_node(const Node& node, const Value& output);
  const GraphModule& module_;
  std::shared_ptr<const TensorMap> tensors_;
  std::unordered_map<const Value*, std::optional<WeightView>> known_;
  std::unordered_map<const Value*, size_t> roots_;
};

/// "" where the view holds all elements of the stored tensor; "[16:48]" for its rows; "[+100]" for any other
/// part.
std::string describe_part(const at::Tensor& view, const at::Tensor& stored);

}  // namespace halftone
