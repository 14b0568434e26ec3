#include "autograd/dependencies.h"

#include <algorithm>
#include <unordered_map>

namespace halftone {

std::vector<std::vector<bool>> tangents_behind_gradients(const JointGraph& joint) {
  const Graph& graph = *joint.graph;
  std::unordered_map<const Value*, std::vector<bool>> behind;
  for (size_t i = 0; i < joint.tangents; ++i) {
    std::vector<bool>& own = behind[graph.inputs()[joint.primals + i].value];
    own.resize(joint.tangents);
    own[i] = true;
  }
  const auto add = [&](const Value* value, std::vector<bool>& sum) {
    const auto known = behind.find(value);
    if (known == behind.end()) return;
    for (size_t i = 0; i < joint.tangents; ++i) sum[i] = sum[i] || known->second[i];
  };
  for (const auto& node : graph.nodes()) {
    std::vector<bool> sum(joint.tangents);
    for (const Value* value : node->input_values()) add(value, sum);
    // Of forward's values, half of all, there is nothing to remember.
    if (std::find(sum.begin(), sum.end(), true) == sum.end()) continue;
    for (const Value* output : node->outputs()) behind[output] = sum;
  }
  std::vector<std::vector<bool>> gradients;
  for (size_t i = joint.results; i < graph.outputs().size(); ++i) {
    gradients.emplace_back(joint.tangents);
    if (const Value* value = graph.output_value(i).value()) add(value, gradients.back());
  }
  return gradients;
}

}  // namespace halftone
