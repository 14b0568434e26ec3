#include "autograd/partition/simplify.h"

#include <bit>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "autograd/partition/bytes.h"
#include "autograd/partition/joint_nodes.h"
#include "autograd/partition/operator_classes.h"

namespace halftone::partition {
namespace {

void mix(size_t& hash, size_t more) {
  hash ^= more + 0x9e3779b97f4a7c15U + (hash << 6U) + (hash >> 2U);
}

// Of equal arguments equal, and different for 0.0 and -0.0, which compare equal.
void mix(size_t& hash, const Argument& argument) {
  mix(hash, argument.data().index());
  if (const Value* value = argument.value()) mix(hash, std::hash<const Value*>()(value));
  if (const auto number = argument.as_int()) mix(hash, static_cast<size_t>(*number));
  if (const double* number = argument.get_if<double>()) mix(hash, std::bit_cast<size_t>(*number));
  if (const auto* list = argument.list()) {
    for (const Argument& item : *list) mix(hash, item);
  }
}

size_t hash_of(const Node& node) {
  size_t hash = std::hash<std::string_view>()(node.target());
  for (const NamedArgument& input : node.inputs()) mix(hash, input.value);
  return hash;
}

bool are_equal(const Node& a, const Node& b) {
  return a.target() == b.target() && a.inputs() == b.inputs() && a.outputs().size() == b.outputs().size();
}

void merge_equal_nodes(Graph& graph) {
  std::unordered_set<const Value*> leaving;
  for (const Value* value : output_values(graph, 0, graph.outputs().size()))
    leaving.insert(storage_of(value));
  std::unordered_map<size_t, std::vector<const Node*>> seen;
  for (const auto& node : graph.nodes()) {
    // Fresh memory without contents is never equal to other memory.
    if (node->outputs().empty() || runs_once(*node) || node->target().starts_with("aten::empty")) continue;
    bool shared = false;
    for (const Value* output : node->outputs()) shared = shared || leaving.contains(storage_of(output));
    if (shared) continue;
    std::vector<const Node*>& same_hash = seen[hash_of(*node)];
    const Node* twin = nullptr;
    for (const Node* candidate : same_hash) {
      if (are_equal(*node, *candidate)) twin = candidate;
    }
    if (twin == nullptr) {
      same_hash.push_back(node.get());
      continue;
    }
    for (size_t i = 0; i < node->outputs().size(); ++i)
      graph.replace_all_uses(node->output(i), twin->output(i));
  }
}

}  // namespace

JointGraph simplified(const JointGraph& joint) {
  check_joint(joint);
  JointGraph copy{joint.graph->clone(), joint.primals, joint.tangents, joint.results, nullptr};
  std::unordered_set<const Node*> backward;
  auto fresh = copy.graph->nodes().begin();
  bool in_backward = false;
  for (const auto& node : joint.graph->nodes()) {
    in_backward = in_backward || node.get() == joint.first_backward;
    if (in_backward) backward.insert(fresh->get());
    ++fresh;
  }
  copy.graph->erase_dead_nodes();
  merge_equal_nodes(*copy.graph);
  copy.graph->erase_dead_nodes();
  for (const auto& node : copy.graph->nodes()) {
    if (copy.first_backward == nullptr && backward.contains(node.get())) copy.first_backward = node.get();
  }
  return copy;
}

}  // namespace halftone::partition
