// What a compiler is shown of a graph whose inputs are all the caller's.
#pragma once

#include <memory>
#include <string>

#include "halftone/graph/graph_module.h"

namespace halftone {

/// A tensor for each input of the graph, with sizes and types but without data.
std::vector<c10::IValue> examples_without_data(const Graph& graph);

}  // namespace halftone
