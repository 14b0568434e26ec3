#include "autograd/partition/split.h"

#include "autograd/partition/joint_nodes.h"
#include "autograd/partition/operator_classes.h"
#include "base/errors.h"
#include "graph/ir/copy.h"

namespace halftone::partition {
namespace {

class ParallelFor {
 public:
  ParallelFor(const JointGraph& joint, const ValueSet& saved, const NodeSet& runs_in_backward)
      : joint_(joint), saved_(saved), runs_in_backward_(runs_in_backward) {
    for (const auto& node : joint.graph->nodes()) nodes_.push_back(node.get());
    for (size_t i = 0; i < joint.graph->inputs().size(); ++i)
      (i < joint.primals ? primals_ : tangents_).insert(joint.graph->inputs()[i].value);
  }

  PartitionedGraphs run() {
    find_backward_nodes();
    PartitionedGraphs graphs;
    const std::vector<const Value*> kept = ordered_saved();
    graphs.saved = kept.size();
    graphs.forward = make_forward(kept);
    graphs.backward = make_backward(kept);
    return graphs;
  }

 private:
  // Marks what backward must compute, and which values it takes from forward.
  void find_backward_nodes() {
    const Graph& graph = *joint_.graph;
    std::vector<const Value*> wanted = output_values(graph, joint_.results, graph.outputs().size());
    for (const Node* node : runs_in_backward_) demand_node(*node, wanted);
    while (!wanted.empty()) {
      const Value* value = wanted.back();
      wanted.pop_back();
      if (tangents_.contains(value)) continue;
      // Only values that backward reads become outputs of forward: a saved value that is not needed is
      // dropped.
      if (saved_.contains(value) || primals_.contains(value)) {
        taken_.insert(value);
      } else if (!backward_.contains(value->producer())) {
        demand_node(*value->producer(), wanted);
      }
    }
  }

  void demand_node(const Node& node, std::vector<const Value*>& wanted) {
    if (runs_once(node) && !runs_in_backward_.contains(&node)) {
      fail(ErrorCode::kInternal, "backward would run {} again, which must run once: its result was not saved",
           node.target());
    }
    backward_.insert(&node);
    for (const Value* input : node.input_values()) wanted.push_back(input);
  }

  std::vector<const Value*> ordered_saved() const {
    std::vector<const Value*> order;
    for (const GraphInput& input : joint_.graph->inputs()) {
      if (taken_.contains(input.value)) order.push_back(input.value);
    }
    for (const Node* node : nodes_) {
      for (const Value* output : node->outputs()) {
        if (taken_.contains(output)) order.push_back(output);
      }
    }
    return order;
  }

  std::unique_ptr<Graph> make_forward(const std::vector<const Value*>& kept) const {
    const Graph& joint = *joint_.graph;
    std::vector<const Value*> wanted = output_values(joint, 0, joint_.results);
    wanted.insert(wanted.end(), kept.begin(), kept.end());
    NodeSet needed;
    for (const Node* node : nodes_) {
      // Nodes with side effects run in forward even if no result needs them: they are part of what the
      // model does.
      if (runs_once(*node) && !runs_in_backward_.contains(node)) add_needed(*node, needed, wanted);
    }
    while (!wanted.empty()) {
      const Value* value = wanted.back();
      wanted.pop_back();
      if (value->producer() != nullptr) add_needed(*value->producer(), needed, wanted);
    }
    auto graph = std::make_unique<Graph>();
    ValueMapping mapping;
    for (size_t i = 0; i < joint_.primals; ++i) {
      const GraphInput& input = joint.inputs()[i];
      mapping[input.value] = graph->add_input(spec_of(*input.value), input.kind, input.target);
      graph->set_input_fixed(i, input.fixed);
    }
    for (const Node* node : nodes_) {
      if (needed.contains(node)) append_copy(*graph, *node, mapping);
    }
    std::vector<Argument> outputs;
    std::vector<GraphOutput> kinds(joint.outputs().begin(),
                                   joint.outputs().begin() + static_cast<std::ptrdiff_t>(joint_.results));
    for (size_t i = 0; i < joint_.results; ++i)
      outputs.push_back(copy_argument(joint.output_value(i), mapping));
    for (const Value* value : kept) outputs.emplace_back(mapping.at(value));
    kinds.resize(outputs.size());
    graph->set_outputs(std::move(outputs), std::move(kinds));
    return graph;
  }

  static void add_needed(const Node& node, NodeSet& needed, std::vector<const Value*>& wanted) {
    if (!needed.insert(&node).second) return;
    for (const Value* input : node.input_values()) wanted.push_back(input);
  }

  std::unique_ptr<Graph> make_backward(const std::vector<const Value*>& kept) const {
    const Graph& joint = *joint_.graph;
    auto graph = std::make_unique<Graph>();
    ValueMapping mapping;
    for (const Value* value : kept)
      mapping[value] = graph->add_input(spec_of(*value), InputKind::kUser, value->name());
    for (size_t i = joint_.primals; i < joint.inputs().size(); ++i) {
      const Value* tangent = joint.inputs()[i].value;
      mapping[tangent] = graph->add_input(spec_of(*tangent), InputKind::kUser, tangent->name());
    }
    for (const Node* node : backward_order()) append_copy(*graph, *node, mapping);
    std::vector<Argument> outputs;
    std::vector<GraphOutput> kinds;
    for (size_t i = joint_.results; i < joint.outputs().size(); ++i) {
      outputs.push_back(copy_argument(joint.output_value(i), mapping));
      kinds.push_back(joint.outputs()[i]);
    }
    graph->set_outputs(std::move(outputs), std::move(kinds));
    return graph;
  }

  // What depends on tangents in the order of the trace; everything else just before its first use, so that
  // recomputed values live as short as they can.
  std::vector<const Node*> backward_order() const {
    std::vector<const Node*> order;
    NodeSet done;
    ValueSet depends = tangents_;
    for (const Node* node : nodes_) {
      if (!backward_.contains(node)) continue;
      bool anchored = runs_in_backward_.contains(node);
      for (const Value* input : node->input_values()) anchored = anchored || depends.contains(input);
      if (!anchored) continue;
      for (const Value* output : node->outputs()) depends.insert(output);
      append_with_operands(*node, order, done);
    }
    for (const Value* value : output_values(*joint_.graph, joint_.results, joint_.graph->outputs().size())) {
      if (value->producer() != nullptr && backward_.contains(value->producer()) && !taken_.contains(value))
        append_with_operands(*value->producer(), order, done);
    }
    return order;
  }

  // Depth first, operands before users, with a stack of its own: recomputed chains can be long.
  void append_with_operands(const Node& last, std::vector<const Node*>& order, NodeSet& done) const {
    std::vector<const Node*> stack = {&last};
    while (!stack.empty()) {
      const Node* node = stack.back();
      if (done.contains(node)) {
        stack.pop_back();
        continue;
      }
      const size_t height = stack.size();
      const std::vector<Value*> inputs = node->input_values();
      for (auto input = inputs.rbegin(); input != inputs.rend(); ++input) {
        const Node* producer = (*input)->producer();
        if (producer == nullptr || taken_.contains(*input) || done.contains(producer)) continue;
        stack.push_back(producer);
      }
      if (stack.size() != height) continue;
      stack.pop_back();
      done.insert(node);
      order.push_back(node);
    }
  }

  const JointGraph& joint_;
  const ValueSet& saved_;
  const NodeSet& runs_in_backward_;
  std::vector<const Node*> nodes_;
  ValueSet primals_;
  ValueSet tangents_;
  ValueSet taken_;    // of saved values and primals, those that backward reads
  NodeSet backward_;  // what backward computes
};

}  // namespace

PartitionedGraphs split_joint(const JointGraph& joint, const ValueSet& saved,
                              const NodeSet& runs_in_backward) {
  return ParallelFor(joint, saved, runs_in_backward).run();
}

}  // namespace halftone::partition
