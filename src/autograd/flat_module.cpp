#include "autograd/flat_module.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>

#include "capture/module/geometry.h"

namespace halftone {
namespace {

TreeSpec tuple_of(size_t leaves) {
  TreeSpec spec;
  spec.kind = TreeSpec::Kind::kTuple;
  spec.type_name = "tuple";
  spec.children.resize(leaves);
  return spec;
}

}  // namespace

std::shared_ptr<GraphModule> flat_module(std::unique_ptr<Graph> graph, std::string name) {
  CallSpec call;
  call.args = tuple_of(graph->inputs().size());
  call.kwargs.kind = TreeSpec::Kind::kDict;
  call.result = tuple_of(graph->outputs().size());
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
