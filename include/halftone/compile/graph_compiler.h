// The interface of graph compilers: AotAutograd calls some, and is one itself; backends are registered as
// such.
#pragma once

#include <ATen/core/ivalue.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "halftone/graph/graph_module.h"

namespace halftone {

/// A compiled function: one value for each user input of the graph in, one for each user output out (writes
/// to inputs and buffers are applied). Thread-safe. It must not change its inputs unless the graph does.
using CompiledFunction = std::function<std::vector<c10::IValue>(std::vector<c10::IValue> inputs)>;

/// Options by name, as a user wrote them; a compiler says which it knows and names the others in a warning.
using CompilerOptions = std::map<std::string, c10::IValue, std::less<>>;

/// Makes a graph fast for inputs such as the examples (one for each user input; tensors there may be meta
/// tensors, of which only sizes and types are known). The module is shared: compilers that rewrite it work on
/// a copy.
using GraphCompiler =
    std::function<CompiledFunction(const std::shared_ptr<GraphModule>& module,
                                   const std::vector<c10::IValue>& examples, const CompilerOptions& options)>;

}  // namespace halftone
