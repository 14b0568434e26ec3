// Inputs of a graph that nothing needs any more, and the tensors behind them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "halftone/graph/graph_module.h"

namespace halftone {

struct UnusedInputOptions {
  /// The caller's arguments too; their tensors are no business of the module.
  bool user_inputs = false;
  /// First erases what stands below the candidates and gives results that nothing uses, so that a view of a
  /// weight does not keep the weight. Nodes with side effects stay.
  bool dead_users = false;
  /// Which inputs may go; empty: all of them.
  std::function<bool(const GraphInput&)> candidate = nullptr;
};

/// An input that was taken out.
struct RemovedInput {
  size_t index = 0;     ///< where it stood among the inputs
  size_t argument = 0;  ///< of a user input: which one of them
  InputKind kind = InputKind::kUser;
  std::string target;
};

/// Takes out the inputs that no node reads, no output returns and no mutation output writes; tensors that no
/// input shows any more leave `tensors`. What went, in the order of the inputs. Linear in the graph's size.
std::vector<RemovedInput> remove_unused_inputs(Graph& graph, TensorMap& tensors,
                                               const UnusedInputOptions& options = {});
std::vector<RemovedInput> remove_unused_inputs(GraphModule& module, const UnusedInputOptions& options = {});
/// Whether there is one that would be taken out; does not look at dead users.
bool has_unused_inputs(const Graph& graph, const UnusedInputOptions& options = {});

/// For `candidate`: the stored tensors of these names, and other names of the same memory, as tied weights
/// have. `tensors` must outlive the result.
std::function<bool(const GraphInput&)> named_or_tied(const TensorMap& tensors,
                                                     const std::vector<std::string>& names);

}  // namespace halftone
