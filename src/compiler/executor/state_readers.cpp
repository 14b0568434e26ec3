#include "compiler/executor/state_readers.h"

#include <algorithm>

namespace halftone::compiler {

namespace {

const GraphInput* try_state_input(const Graph& graph, const Value* value) {
  const auto found = std::find_if(graph.inputs().begin(), graph.inputs().end(),
                                  [&](const GraphInput& input) { return input.value == value; });
  return found == graph.inputs().end() || found->kind == InputKind::kUser ? nullptr : &*found;
}

}  // namespace

StateReaders::StateReaders(const Graph& graph) : graph_(graph), aliases_(graph) {
  size_t place = 0;
  for (const auto& node : graph.nodes()) {
    places_.emplace(node.get(), place);
    for (const Value* value : node->input_values()) last_readers_[aliases_.set_of(value)] = place;
    ++place;
  }
}

bool StateReaders::is_replaced_by(const Value* state, const Node& node, const Value* output) const {
  const GraphInput* input = try_state_input(graph_, state);
  const size_t* place = places_.find(&node);
  const size_t* last = last_readers_.find(aliases_.set_of(state));
  if (input == nullptr || place == nullptr || last == nullptr || *last > *place) return false;
  // A state that another node writes to has no one old content.
  if (aliases_.is_written(state) || aliases_.is_written(output) || aliases_.may_share(state, output))
    return false;
  const auto& results = graph_.return_node().inputs();
  bool found = false;
  for (size_t i = 0; i < results.size(); ++i) {
    const Value* result = results[i].value.value();
    if (result == nullptr) continue;
    const GraphOutput& spec = graph_.outputs()[i];
    const bool is_new_content = result == output && !found && spec.kind == OutputKind::kBufferMutation &&
                                spec.target == input->target;
    if (is_new_content) {
      found = true;
    } else if (aliases_.may_share(result, state) || aliases_.may_share(result, output)) {
      return false;
    }
  }
  return found;
}

}  // namespace halftone::compiler
