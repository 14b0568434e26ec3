#include "autograd/partition/joint_nodes.h"

#include <algorithm>
#include <limits>

#include "autograd/partition/operator_classes.h"
#include "base/errors.h"

namespace halftone::partition {
namespace {

constexpr size_t kFar = std::numeric_limits<size_t>::max() / 2;

void collect_values(const Argument& argument, std::vector<const Value*>& values) {
  if (const Value* value = argument.value()) values.push_back(value);
  if (const auto* list = argument.list()) {
    for (const Argument& item : *list) collect_values(item, values);
  }
}

bool is_element_node(const Node& node) {
  return node.is("builtin::unpack") || node.is("builtin::getitem");
}

}  // namespace

std::vector<const Value*> output_values(const Graph& graph, size_t begin, size_t end) {
  std::vector<const Value*> values;
  for (size_t i = begin; i < end; ++i) collect_values(graph.output_value(i), values);
  return values;
}

void check_joint(const JointGraph& joint) {
  if (joint.graph == nullptr) fail(ErrorCode::kInvalidArgument, "a joint graph without a graph");
  const size_t inputs = joint.graph->inputs().size();
  const size_t outputs = joint.graph->outputs().size();
  if (inputs != joint.primals + joint.tangents) {
    fail(ErrorCode::kInvalidArgument, "a joint graph of {} primals and {} tangents has {} inputs",
         joint.primals, joint.tangents, inputs);
  }
  if (outputs != joint.results + joint.primals) {
    fail(ErrorCode::kInvalidArgument, "a joint graph of {} results and {} primals has {} outputs",
         joint.results, joint.primals, outputs);
  }
}

JointNodes::JointNodes(const JointGraph& joint) : joint_(joint) {
  check_joint(joint);
  add_inputs();
  bool in_backward_part = false;
  for (const auto& node : joint.graph->nodes()) {
    in_backward_part = in_backward_part || node.get() == joint.first_backward;
    add_node(*node, in_backward_part);
  }
  mark_outputs();
  mark_forward();
  measure_distances();
}

void JointNodes::add_inputs() {
  for (size_t i = 0; i < joint_.graph->inputs().size(); ++i) {
    JointNode joint_node;
    joint_node.value = joint_.graph->inputs()[i].value;
    joint_node.is_primal = i < joint_.primals;
    joint_node.needs_tangent = !joint_node.is_primal;
    add_joint_node(std::move(joint_node), {});
  }
}

size_t JointNodes::add_joint_node(JointNode joint_node, const std::vector<const Value*>& operands) {
  const size_t index = joint_nodes_.size();
  for (const Value* operand : operands) {
    const size_t input = index_.at(operand);
    if (std::find(joint_node.inputs.begin(), joint_node.inputs.end(), input) != joint_node.inputs.end())
      continue;
    joint_node.inputs.push_back(input);
    joint_nodes_[input].users.push_back(index);
    joint_node.needs_tangent = joint_node.needs_tangent || joint_nodes_[input].needs_tangent;
  }
  if (joint_node.value != nullptr) index_[joint_node.value] = index;
  joint_nodes_.push_back(std::move(joint_node));
  return index;
}

void JointNodes::add_node(const Node& node, bool in_backward_part) {
  const std::vector<Value*> values = node.input_values();
  const std::vector<const Value*> operands(values.begin(), values.end());
  JointNode joint_node;
  joint_node.node = &node;
  joint_node.in_backward_part = in_backward_part;
  if (is_element_node(node)) {
    joint_node.is_element = true;
    for (const Value* output : node.outputs()) {
      joint_node.value = output;
      add_joint_node(joint_node, operands);
    }
    return;
  }
  if (node.outputs().size() == 1) {
    joint_node.value = node.output();
    add_joint_node(std::move(joint_node), operands);
    return;
  }
  const size_t whole = add_joint_node(joint_node, operands);
  for (const Value* output : node.outputs()) {
    JointNode element;
    element.node = &node;
    element.value = output;
    element.is_element = true;
    element.in_backward_part = in_backward_part;
    element.needs_tangent = joint_nodes_[whole].needs_tangent;
    element.inputs = {whole};
    joint_nodes_[whole].users.push_back(joint_nodes_.size());
    add_joint_node(std::move(element), {});
  }
}

void JointNodes::mark_outputs() {
  const Graph& graph = *joint_.graph;
  for (const Value* value : output_values(graph, 0, joint_.results))
    joint_nodes_[index_.at(value)].is_result = true;
  for (const Value* value : output_values(graph, joint_.results, graph.outputs().size()))
    joint_nodes_[index_.at(value)].is_gradient = true;
}

void JointNodes::mark_forward() {
  for (size_t i = joint_nodes_.size(); i-- > 0;) {
    JointNode& joint_node = joint_nodes_[i];
    const bool must_run = joint_node.node != nullptr && !joint_node.is_element &&
                          !joint_node.in_backward_part && !joint_node.needs_tangent &&
                          runs_once(*joint_node.node);
    joint_node.is_forward = joint_node.is_forward || joint_node.is_primal || joint_node.is_result || must_run;
    if (!joint_node.is_forward) continue;
    if (joint_node.needs_tangent) {
      fail(ErrorCode::kInvalidArgument, "a result of the forward pass depends on a gradient, by {}{}",
           joint_node.value != nullptr ? "%" : "",
           joint_node.value != nullptr ? joint_node.value->name() : joint_node.node->target());
    }
    for (const size_t input : joint_node.inputs) joint_nodes_[input].is_forward = true;
  }
}

std::unordered_set<const Node*> JointNodes::backward_side_effects() const {
  std::unordered_set<const Node*> nodes;
  for (const JointNode& joint_node : joint_nodes_) {
    if (joint_node.node != nullptr && !joint_node.is_forward && !joint_node.is_element &&
        runs_once(*joint_node.node))
      nodes.insert(joint_node.node);
  }
  return nodes;
}

void JointNodes::measure_distances() {
  for (size_t i = joint_nodes_.size(); i-- > 0;) {
    JointNode& joint_node = joint_nodes_[i];
    if (!joint_node.is_forward) continue;
    joint_node.distance = kFar;
    for (const size_t user : joint_node.users)
      joint_node.distance = std::min(joint_node.distance, joint_nodes_[user].distance + 1);
  }
}

}  // namespace halftone::partition
