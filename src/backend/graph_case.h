// Cases: graphs with tensors and inputs, copied and rebuilt while the minifier works on them.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "halftone/minify.h"

namespace halftone {

/// The same case with memory of its own for inputs and for what the graph writes to. Tensors whose elements
/// overlap are spread out.
GraphCase copy_of(const GraphCase& graph_case);

/// What each value of the graph holds in a run, by name; tensors are copies.
using RecordedValues = std::unordered_map<std::string, c10::IValue>;
RecordedValues record_values(const GraphCase& graph_case);

}  // namespace halftone
