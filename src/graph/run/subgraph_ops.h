// The control-flow built-ins: operations whose operands are graphs.
#pragma once

#include <ATen/core/ivalue.h>

#include <string_view>
#include <vector>

namespace halftone {

class Interpreter;

/// What a control-flow built-in is called with: its graphs, in order, and its other operands (lists as
/// tuples), in order.
struct SubgraphCall {
  std::vector<const Interpreter*> graphs;
  std::vector<c10::IValue> operands;
};

using SubgraphFunction = std::vector<c10::IValue> (*)(const SubgraphCall& call);

/// The implementation of builtin::cond, while_loop, map or scan; nullptr for other names.
SubgraphFunction try_subgraph_function(std::string_view name);

}  // namespace halftone
