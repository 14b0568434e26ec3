// An executor of a module's graph as the function that a compiler returns.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "halftone/compile/graph_compiler.h"

namespace halftone {

/// Checks the inputs of each call (kGuard), runs the executor in the caller's grad mode on the module's
/// present tensors, and writes what the graph writes into inputs and into the module's own buffers. Calls of
/// a graph that writes to buffers take turns; others run side by side.
CompiledFunction function_of(std::shared_ptr<const GraphModule> module,
                             std::shared_ptr<const GraphExecutor> executor);

/// A copy, which stays as it is when the module's graph is rewritten later.
std::shared_ptr<const Graph> copy_of_graph(const GraphModule& module);

/// A warning that names the options which are not among `known`.
void warn_of_unknown_options(std::string_view backend, const CompilerOptions& options,
                             const std::vector<std::string_view>& known = {});

}  // namespace halftone
