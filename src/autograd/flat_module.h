// A graph whose inputs are all the caller's, as a module that compilers take.
#pragma once

#include <memory>
#include <string>

#include "halftone/graph_module.h"

namespace halftone {

std::shared_ptr<GraphModule> flat_module(std::unique_ptr<Graph> graph, std::string name);

/// A tensor for each input of the graph, with sizes and types but without data.
std::vector<c10::IValue> examples_without_data(const Graph& graph);

}  // namespace halftone
