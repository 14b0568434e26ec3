// A graph as patterns see it: operations with the names they go by, and groups of them that were fused.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "halftone/graph/graph.h"

namespace halftone::ptq {

/// One operation to the patterns: a node, or several that were fused. Pointers are the graph's.
struct FusedOp {
  std::vector<Node*> nodes;             ///< in order of execution; the last one makes the result
  Node* root = nullptr;                 ///< the node with the weight, or the first
  std::vector<std::string> names;       ///< as names_of(); of fused ones the fused module's type
  std::vector<std::string> root_names;  ///< of fused ones: what the root went by alone; else empty
  std::string layer;
  bool is_module = false;
  /// Activations that come from outside, in order, without weights and biases; nullptr: a number.
  std::vector<Value*> args;

  Value* output() const { return nodes.back()->output(); }
  bool goes_by(std::string_view name) const;
};

/// Operands of the operator that belong to the layer and are not activations: "weight", "bias", ….
bool is_parameter_operand(const Node& node, std::string_view operand);
/// Whether the operator's operand "weight" may be quantized: convolutions, linears, embeddings.
bool has_quantizable_weight(const Node& node);

class FusedOpGraph {
 public:
  explicit FusedOpGraph(Graph& graph);

  const std::vector<std::unique_ptr<FusedOp>>& fused_ops() const {
    return fused_ops_;
  }                                             ///< in order of execution
  FusedOp* producer(const Value* value) const;  ///< nullptr for inputs of the graph
  /// Takes a fused op out whose node is gone.
  void erase(FusedOp* fused_op);
  /// Makes one fused op of these, in order of execution, at the place of the last. `root` gives layer and weight;
  /// `type` is a module type, or "": the root's names stay.
  FusedOp* fuse(const std::vector<FusedOp*>& parts, FusedOp* root, const std::string& type);

 private:
  void index(FusedOp* fused_op);
  std::vector<std::unique_ptr<FusedOp>> fused_ops_;
  std::unordered_map<const Value*, FusedOp*> producers_;
};

}  // namespace halftone::ptq
