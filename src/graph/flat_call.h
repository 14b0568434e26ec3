// The call of a graph without nested arguments.
#pragma once

#include "halftone/graph/graph_module.h"

namespace halftone {

/// A call spec for flat positional inputs and a flat tuple of outputs.
inline CallSpec flat_call(const Graph& graph) {
  CallSpec call;
  call.args.kind = TreeSpec::Kind::kTuple;
  call.kwargs.kind = TreeSpec::Kind::kDict;
  call.result.kind = TreeSpec::Kind::kTuple;
  for (const GraphInput& input : graph.inputs()) {
    if (input.kind == InputKind::kUser) call.args.children.push_back(TreeSpec::leaf());
  }
  for (const GraphOutput& output : graph.outputs()) {
    if (output.kind == OutputKind::kUser) call.result.children.push_back(TreeSpec::leaf());
  }
  return call;
}

/// A module that is called so.
inline std::shared_ptr<GraphModule> flat_module(std::unique_ptr<Graph> graph, TensorMap tensors,
                                                std::string name) {
  CallSpec call = flat_call(*graph);
  auto module = std::make_shared<GraphModule>(std::move(graph), std::move(tensors), std::move(call));
  module->name = std::move(name);
  return module;
}

}  // namespace halftone
