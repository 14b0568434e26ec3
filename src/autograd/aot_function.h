// The result of AotAutograd: compiled forward and backward as one differentiable function.
#pragma once

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "capture/module/joint_trace.h"
#include "graph/checks/result_check.h"
#include "halftone/compile/graph_compiler.h"

namespace halftone {

/// Everything that the calls share. Immutable but for backward, which is compiled at its first use.
struct AotProgram {
  JointTrace trace;  ///< without its graph, which was split
  std::vector<TensorMeta> tangents;
  /// For each primal: which tangents its gradient is computed from.
  std::vector<std::vector<bool>> depends;
  /// Of the arguments, as they were traced; nothing for those that are not tensors.
  std::vector<std::optional<TensorMeta>> leaves;
  std::vector<size_t> same_as;     ///< for each leaf of the arguments, the first that is the same tensor
  std::vector<c10::IValue> fixed;  ///< leaves that are not tensors must be these
  bool debug_assert = false;
  /// An operator of the graph does something else if grad mode is off (recurrent layers of oneDNN keep no
  /// workspace then): forward runs with it on.
  bool grad_mode = false;
  std::optional<c10::ScalarType> autocast;  ///< what it converted to; nothing: it was off
  std::string name;
  CompiledFunction forward;
  ResultCheck check_forward{"the forward compiler"};
  ResultCheck check_backward{"the backward compiler"};
  size_t saved = 0;

  std::shared_ptr<GraphModule> backward_graph;  ///< nullptr in an inference program
  GraphCompiler backward_compiler;
  CompilerOptions options;

  /// Compiles at the first call; a failure is raised to that caller and tried again by the next.
  const CompiledFunction& backward() const;

 private:
  mutable std::mutex mutex_;
  mutable CompiledFunction backward_;
};

/// Flat arguments in, flat results out, differentiable where the program has a backward.
std::vector<c10::IValue> run_aot(const std::shared_ptr<const AotProgram>& program,
                                 std::vector<c10::IValue> leaves);

}  // namespace halftone
