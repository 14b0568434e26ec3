#include "autograd/flat_module.h"

#include <ATen/ops/empty_strided.h>

#include "capture/module/geometry.h"
#include "graph/flat_call.h"

namespace halftone {

std::shared_ptr<GraphModule> flat_module(std::unique_ptr<Graph> graph, std::string name) {
  CallSpec call = flat_call(*graph);
  auto module = std::make_shared<GraphModule>(std::move(graph), TensorMap(), std::move(call));
  module->name = std::move(name);
  return module;
}

std::vector<c10::IValue> examples_without_data(const Graph& graph) {
  std::vector<c10::IValue> examples;
  for (const GraphInput& input : graph.inputs()) {
    const TensorMeta& meta = *input.value->meta();
    examples.emplace_back(at::empty_strided(constant_sizes(meta.sizes), constant_sizes(meta.strides),
                                            at::dtype(meta.dtype).device(c10::kMeta)));
  }
  return examples;
}

}  // namespace halftone
