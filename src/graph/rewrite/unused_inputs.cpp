#include "graph/rewrite/unused_inputs.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <unordered_set>

namespace halftone {
namespace {

using Candidates = std::unordered_set<const Value*>;

Candidates find_candidates(const Graph& graph, const UnusedInputOptions& options) {
  std::unordered_set<std::string_view> written_buffers, written_arguments;
  for (const GraphOutput& output : graph.outputs()) {
    if (output.kind == OutputKind::kBufferMutation) written_buffers.insert(output.target);
    if (output.kind == OutputKind::kInputMutation) written_arguments.insert(output.target);
  }
  Candidates candidates;
  for (const GraphInput& input : graph.inputs()) {
    const bool user = input.kind == InputKind::kUser;
    if (user && !options.user_inputs) continue;
    if ((user ? written_arguments : written_buffers).contains(input.target)) continue;
    if (!options.candidate || options.candidate(input)) candidates.insert(input.value);
  }
  return candidates;
}

/// What reads one of the values, and what reads its results, to the end of the graph.
std::unordered_set<const Node*> nodes_below(const Candidates& values) {
  std::unordered_set<const Node*> below;
  std::vector<const Value*> pending(values.begin(), values.end());
  while (!pending.empty()) {
    const Value* value = pending.back();
    pending.pop_back();
    for (const Node* user : value->users()) {
      if (below.insert(user).second)
        pending.insert(pending.end(), user->outputs().begin(), user->outputs().end());
    }
  }
  return below;
}

/// One walk over the nodes, however many paths lead through them: a residual network of n layers has 2^n.
void erase_dead_users(Graph& graph, const Candidates& values) {
  const std::unordered_set<const Node*> below = nodes_below(values);
  std::vector<Node*> last_first;
  for (const auto& node : graph.nodes()) {
    if (below.contains(node.get()) && !has_side_effects(*node)) last_first.push_back(node.get());
  }
  std::reverse(last_first.begin(), last_first.end());
  for (Node* node : last_first) {
    const bool dead = std::all_of(node->outputs().begin(), node->outputs().end(),
                                  [](const Value* output) { return output->users().empty(); });
    if (dead) graph.erase(node);
  }
}

std::vector<RemovedInput> remove_from_graph(Graph& graph, const UnusedInputOptions& options) {
  const Candidates candidates = find_candidates(graph, options);
  if (options.dead_users) erase_dead_users(graph, candidates);
  std::vector<RemovedInput> removed;
  std::vector<size_t> indices;
  size_t arguments = 0;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const GraphInput& input = graph.inputs()[i];
    const size_t argument = input.kind == InputKind::kUser ? arguments++ : 0;
    if (!candidates.contains(input.value) || !input.value->users().empty()) continue;
    removed.push_back({i, argument, input.kind, input.target});
    indices.push_back(i);
  }
  graph.erase_inputs(indices);
  return removed;
}

/// Calls erase(name) for each tensor of a removed input that no other input shows.
template <typename Erase>
void erase_tensors(const Graph& graph, const std::vector<RemovedInput>& removed, const Erase& erase) {
  std::unordered_set<std::string_view> shown;
  for (const GraphInput& input : graph.inputs()) {
    if (input.kind != InputKind::kUser) shown.insert(input.target);
  }
  for (const RemovedInput& input : removed) {
    if (input.kind != InputKind::kUser && !shown.contains(input.target)) erase(input.target);
  }
}

}  // namespace

std::vector<RemovedInput> remove_unused_inputs(Graph& graph, TensorMap& tensors,
                                               const UnusedInputOptions& options) {
  std::vector<RemovedInput> removed = remove_from_graph(graph, options);
  erase_tensors(graph, removed, [&](const std::string& name) { tensors.erase(name); });
  return removed;
}

std::vector<RemovedInput> remove_unused_inputs(GraphModule& module, const UnusedInputOptions& options) {
  Graph& graph = module.mutable_graph();
  std::vector<RemovedInput> removed = remove_from_graph(graph, options);
  erase_tensors(graph, removed, [&](const std::string& name) { module.erase_tensor(name); });
  return removed;
}

bool has_unused_inputs(const Graph& graph, const UnusedInputOptions& options) {
  const Candidates candidates = find_candidates(graph, options);
  return std::any_of(candidates.begin(), candidates.end(),
                     [](const Value* value) { return value->users().empty(); });
}

std::function<bool(const GraphInput&)> named_or_tied(const TensorMap& tensors,
                                                     const std::vector<std::string>& names) {
  const auto memory_of = [](const at::Tensor& tensor) -> const void* {
    return tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl() : nullptr;
  };
  struct Named {
    std::unordered_set<std::string> names;
    std::unordered_multimap<const void*, at::Tensor> by_memory;
  };
  auto named = std::make_shared<Named>();
  named->names.insert(names.begin(), names.end());
  for (const std::string& name : names) {
    const auto found = tensors.find(name);
    if (found != tensors.end()) named->by_memory.emplace(memory_of(found->second), found->second);
  }
  return [&tensors, named, memory_of](const GraphInput& input) {
    if (input.kind == InputKind::kUser) return false;
    if (named->names.contains(input.target)) return true;
    const auto mine = tensors.find(input.target);
    if (mine == tensors.end() || memory_of(mine->second) == nullptr) return false;
    const auto [first, last] = named->by_memory.equal_range(memory_of(mine->second));
    return std::any_of(first, last, [&](const auto& entry) {
      return mine->second.storage_offset() == entry.second.storage_offset() &&
             mine->second.sizes() == entry.second.sizes();
    });
  };
}

}  // namespace halftone
