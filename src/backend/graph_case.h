// Cases: graphs with tensors and inputs, copied and rebuilt while the minifier works on them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "halftone/compile/minify.h"

namespace halftone {

/// The tensors and inputs of a case for one run: copies of the inputs and of what the graph writes to.
/// Tensors whose elements overlap are spread out.
struct CaseMemory {
  TensorMap tensors;
  std::vector<c10::IValue> inputs;
};
CaseMemory own_memory(const GraphCase& graph_case);

/// The same case with such memory and a graph of its own.
GraphCase copy_of(const GraphCase& graph_case);

/// Runs the case's graph, which is only read, on this memory.
std::vector<c10::IValue> interpret(const GraphCase& graph_case, const CaseMemory& memory,
                                   const NodeHook* hook = nullptr);

/// What values of the graph hold in a run, by name; tensors are copies.
using RecordedValues = std::unordered_map<std::string, c10::IValue>;
/// Of all values, or of those that are wanted.
RecordedValues record_values(const GraphCase& graph_case,
                             const std::function<bool(const Value&)>& wanted = {});

}  // namespace halftone
