// The compiler's rewrites, in order, and what runs them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compiler/passes/pass.h"

namespace halftone::compiler {

struct Pass {
  std::string name;
  std::string what;  ///< one-line description
  Rewrite rewrite;
  /// Only for graphs that have an operator with this in its name; empty: for all. Looking for what cannot be there
  /// costs several walks over the graph.
  std::string only_with = {};
};

/// In the order in which they run.
std::span<const Pass> all_passes();

/// Runs all passes but the disabled ones (kInvalidArgument, with the nearest name, for unknown ones); dead
/// nodes are removed and the graph is checked after each (kInternal if a pass broke it). `log` gets at
/// least one line for each pass. Only the top graph is rewritten; subgraphs of cond and loops stay as they
/// are.
void run_passes(Graph& graph, TensorMap& tensors, const std::map<std::string, SymbolRange>& ranges,
                const std::vector<std::string>& disabled, std::vector<std::string>& log);

}  // namespace halftone::compiler
