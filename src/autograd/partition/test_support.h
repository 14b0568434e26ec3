// Shared by the tests of this folder: joint graphs from text, and running them whole and in parts.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "graph/run/interpreter.h"
#include "halftone/autograd/joint_graph.h"

namespace halftone::partition {

/// `first_backward`: name of an output of the first backward node; empty: there is none.
inline JointGraph joint_from_text(std::string_view text, size_t primals, size_t results,
                                  const std::string& first_backward = {}) {
  JointGraph joint;
  joint.graph = parse_graph(text);
  lint_or_throw(*joint.graph, "test");
  joint.primals = primals;
  joint.tangents = joint.graph->inputs().size() - primals;
  joint.results = results;
  if (!first_backward.empty()) joint.first_backward = joint.graph->value(first_backward)->producer();
  return joint;
}

inline std::vector<c10::IValue> run_graph(const Graph& graph, std::vector<c10::IValue> inputs) {
  lint_or_throw(graph, "test");
  return Interpreter(graph.clone()).run(std::move(inputs));
}

/// Forward, then backward on what it saved: results, then gradients, as the joint graph gives them.
inline std::vector<c10::IValue> run_parts(const PartitionedGraphs& graphs, size_t primals,
                                          const std::vector<c10::IValue>& inputs) {
  const auto middle = inputs.begin() + static_cast<std::ptrdiff_t>(primals);
  std::vector<c10::IValue> outputs = run_graph(*graphs.forward, {inputs.begin(), middle});
  const auto first_saved = outputs.end() - static_cast<std::ptrdiff_t>(graphs.saved);
  std::vector<c10::IValue> backward_inputs(first_saved, outputs.end());
  backward_inputs.insert(backward_inputs.end(), middle, inputs.end());
  outputs.erase(first_saved, outputs.end());
  for (c10::IValue& gradient : run_graph(*graphs.backward, std::move(backward_inputs)))
    outputs.push_back(std::move(gradient));
  return outputs;
}

inline bool same_bits(const c10::IValue& a, const c10::IValue& b) {
  if (!a.isTensor() || !b.isTensor()) return a.isTensor() == b.isTensor();
  const at::Tensor x = a.toTensor().contiguous();
  const at::Tensor y = b.toTensor().contiguous();
  return x.dtype() == y.dtype() && x.sizes() == y.sizes() &&
         (x.numel() == 0 || std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0);
}

inline bool same_bits(const std::vector<c10::IValue>& a, const std::vector<c10::IValue>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!same_bits(a[i], b[i])) return false;
  }
  return true;
}

}  // namespace halftone::partition
