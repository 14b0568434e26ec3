// A joint graph as the partitioners see it: what could be saved, what depends on what, what must run where.
#pragma once

#include <cstddef>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "halftone/autograd/joint_graph.h"

namespace halftone::partition {

/// An input of the graph, an operator with its one result, an operator with several results (which are joint nodes
/// of their own), or one of those. `builtin::unpack` has no joint node: each of its outputs is one.
struct JointNode {
  const Node* node = nullptr;    ///< nullptr for inputs
  const Value* value = nullptr;  ///< nullptr for operators with several results or none
  bool is_element = false;       ///< one of several results, or an element of a list
  std::vector<size_t> inputs;    ///< joint nodes, each once, before this one
  std::vector<size_t> users;     ///< joint nodes, each once, after this one

  bool is_primal = false;
  bool is_result = false;         ///< leaves the forward graph
  bool is_gradient = false;       ///< leaves the backward graph
  bool needs_tangent = false;     ///< can run in backward only
  bool is_forward = false;        ///< a primal, needed by a result, or with side effects in the forward part
  bool in_backward_part = false;  ///< traced in the backward pass, though it may not need a tangent
  /// Operators between this joint node and the next one that is not forward; 0 for those themselves.
  size_t distance = 0;

  bool is_saveable() const { return value != nullptr && value->type() == ValueType::kTensor; }
  bool leaves() const { return is_result || is_gradient; }
};

class JointNodes {
 public:
  /// Throws kInvalidArgument if inputs and outputs are not those of a joint graph, and if a result
  /// needs a tangent. Borrows the joint graph.
  explicit JointNodes(const JointGraph& joint);

  const std::vector<JointNode>& joint_nodes() const { return joint_nodes_; }
  const JointNode& operator[](size_t index) const { return joint_nodes_[index]; }
  size_t size() const { return joint_nodes_.size(); }
  /// Nodes that must run once, and in backward.
  std::unordered_set<const Node*> backward_side_effects() const;

 private:
  void add_inputs();
  void add_node(const Node& node, bool in_backward_part);
  size_t add_joint_node(JointNode joint_node, const std::vector<const Value*>& operands);
  void mark_outputs();
  void mark_forward();
  void measure_distances();

  const JointGraph& joint_;
  std::vector<JointNode> joint_nodes_;
  std::unordered_map<const Value*, size_t> index_;
};

/// Throws kInvalidArgument if the counts of a joint graph contradict its inputs and outputs.
void check_joint(const JointGraph& joint);

/// The values among the outputs [begin, end) of a graph, lists taken apart.
std::vector<const Value*> output_values(const Graph& graph, size_t begin, size_t end);

}  // namespace halftone::partition
