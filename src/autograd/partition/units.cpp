#include "autograd/partition/units.h"

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

JointUnits::JointUnits(const JointGraph& joint) : joint_(joint) {
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

void JointUnits::add_inputs() {
  for (size_t i = 0; i < joint_.graph->inputs().size(); ++i) {
    Unit unit;
    unit.value = joint_.graph->inputs()[i].value;
    unit.is_primal = i < joint_.primals;
    unit.needs_tangent = !unit.is_primal;
    add_unit(std::move(unit), {});
  }
}

size_t JointUnits::add_unit(Unit unit, const std::vector<const Value*>& operands) {
  const size_t index = units_.size();
  for (const Value* operand : operands) {
    const size_t input = index_.at(operand);
    if (std::find(unit.inputs.begin(), unit.inputs.end(), input) != unit.inputs.end()) continue;
    unit.inputs.push_back(input);
    units_[input].users.push_back(index);
    unit.needs_tangent = unit.needs_tangent || units_[input].needs_tangent;
  }
  if (unit.value != nullptr) index_[unit.value] = index;
  units_.push_back(std::move(unit));
  return index;
}

void JointUnits::add_node(const Node& node, bool in_backward_part) {
  const std::vector<Value*> values = node.input_values();
  const std::vector<const Value*> operands(values.begin(), values.end());
  Unit unit;
  unit.node = &node;
  unit.in_backward_part = in_backward_part;
  if (is_element_node(node)) {
    unit.is_element = true;
    for (const Value* output : node.outputs()) {
      unit.value = output;
      add_unit(unit, operands);
    }
    return;
  }
  if (node.outputs().size() == 1) {
    unit.value = node.output();
    add_unit(std::move(unit), operands);
    return;
  }
  const size_t whole = add_unit(unit, operands);
  for (const Value* output : node.outputs()) {
    Unit element;
    element.node = &node;
    element.value = output;
    element.is_element = true;
    element.in_backward_part = in_backward_part;
    element.needs_tangent = units_[whole].needs_tangent;
    element.inputs = {whole};
    units_[whole].users.push_back(units_.size());
    add_unit(std::move(element), {});
  }
}

void JointUnits::mark_outputs() {
  const Graph& graph = *joint_.graph;
  for (const Value* value : output_values(graph, 0, joint_.results))
    units_[index_.at(value)].is_result = true;
  for (const Value* value : output_values(graph, joint_.results, graph.outputs().size()))
    units_[index_.at(value)].is_gradient = true;
}

void JointUnits::mark_forward() {
  for (size_t i = units_.size(); i-- > 0;) {
    Unit& unit = units_[i];
    const bool must_run = unit.node != nullptr && !unit.is_element && !unit.in_backward_part &&
                          !unit.needs_tangent && runs_once(*unit.node);
    unit.is_forward = unit.is_forward || unit.is_primal || unit.is_result || must_run;
    if (!unit.is_forward) continue;
    if (unit.needs_tangent) {
      fail(ErrorCode::kInvalidArgument, "a result of the forward pass depends on a gradient, by {}{}",
           unit.value != nullptr ? "%" : "",
           unit.value != nullptr ? unit.value->name() : unit.node->target());
    }
    for (const size_t input : unit.inputs) units_[input].is_forward = true;
  }
}

std::unordered_set<const Node*> JointUnits::backward_side_effects() const {
  std::unordered_set<const Node*> nodes;
  for (const Unit& unit : units_) {
    if (unit.node != nullptr && !unit.is_forward && !unit.is_element && runs_once(*unit.node))
      nodes.insert(unit.node);
  }
  return nodes;
}

void JointUnits::measure_distances() {
  for (size_t i = units_.size(); i-- > 0;) {
    Unit& unit = units_[i];
    if (!unit.is_forward) continue;
    unit.distance = kFar;
    for (const size_t user : unit.users) unit.distance = std::min(unit.distance, units_[user].distance + 1);
  }
}

}  // namespace halftone::partition
