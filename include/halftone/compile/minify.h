// Finds the smallest graph on which a backend fails, and saves it in a folder from which it can be run again.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "halftone/base/api.h"
#include "halftone/base/progress.h"
#include "halftone/compile/graph_compiler.h"
#include "halftone/graph/graph_module.h"

namespace halftone {

/// A graph, and the inputs of one call: one for each user input.
struct GraphCase {
  std::shared_ptr<GraphModule> module;
  std::vector<c10::IValue> inputs;
};

enum class FailureKind { kCompileError, kRunError, kAccuracy };
/// "compile error", "run error", "wrong numbers"
HALFTONE_API std::string_view to_string(FailureKind kind);

struct BackendFailure {
  FailureKind kind = FailureKind::kAccuracy;
  std::string message;
};

struct MinifyOptions {
  /// A result x is right if |x - y| ≤ tolerance · (1 + |y|) for the interpreter's y; at least eight steps
  /// of the result's own type. NaN is right if y is NaN. A result that is as close to what the graph gives
  /// in float64 as the interpreter's is right too.
  double tolerance = 1e-3;
  int64_t max_trials = 2000;  ///< a search that ends here gives the smallest graph so far
  CompilerOptions compiler_options;
  ProgressCallback progress;  ///< trials done of max_trials
};

/// How the backend fails on this call, if it does. The case is left as it is, even if the graph writes to
/// inputs or buffers, and random numbers are the same in both runs. Errors are those of the interpreter: a
/// graph that fails there says nothing about a backend.
HALFTONE_API std::optional<BackendFailure> find_failure(const GraphCase& graph_case,
                                                        const GraphCompiler& backend,
                                                        const MinifyOptions& options = {});

struct MinifiedCase {
  GraphCase smallest;
  BackendFailure failure;  ///< on the smallest graph
  size_t nodes_before = 0;
  size_t nodes_after = 0;
  int64_t trials = 0;
  bool complete = true;  ///< no single step makes it smaller; false: max_trials ended the search
};

/// Cuts the graph's end off, turns nodes into inputs that hold their values, drops outputs and inputs, as
/// long as the backend fails in the same way: the same kind, and for errors the same first line but for names
/// and numbers. kInvalidArgument if the backend does not fail. A backend that kills the process cannot be
/// minimized.
HALFTONE_API MinifiedCase minify(const GraphCase& graph_case, const GraphCompiler& backend,
                                 const MinifyOptions& options = {});

/// Writes graph.txt, inputs.safetensors (inputs, parameters and buffers by the names of the graph's values)
/// and README.txt into `folder`, which is made if it does not exist.
HALFTONE_API void save_case(const std::string& folder, const MinifiedCase& minified,
                            const std::string& backend);

struct SavedCase {
  GraphCase graph_case;
  BackendFailure failure;  ///< what was seen when it was saved
  std::string backend;
};
/// kNotFound, kCorruptFile and kInvalidArgument name the file.
HALFTONE_API SavedCase load_case(const std::string& folder);

}  // namespace halftone
