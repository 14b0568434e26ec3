// Chains of views: which come back to where they began, and which survive other strides at their root.
#pragma once

#include <functional>

#include "compiler/passes/alias.h"
#include "compiler/passes/pass.h"

namespace halftone::compiler {

/// Replaces a reshape of a reshape that has the sizes of an earlier tensor of the chain by that tensor.
/// Returns how many.
size_t collapse_views(Graph& graph);

/// What happens to the layout of a tensor that is about to change.
enum class LayoutChange {
  kSpread,    ///< the order of the strides stays; rows lie further apart, as in a slice
  kPermuted,  ///< the order changes: an operator that keeps its operand's layout would give another one
};

using StridesFor = std::function<std::vector<int64_t>(const std::vector<int64_t>& sizes)>;

/// Gives values other strides. What it knows of the whole graph (writes, symbols) it knows from when it was
/// made: a pass that writes nothing makes one for all its values.
class Restrider {
 public:
  explicit Restrider(const Graph& graph);

  /// Whether every view of `root`, and of its views, still works if root has those strides (for sizes and
  /// strides as numbers), and nothing else sees the difference: root is neither returned nor written to.
  /// Tried with meta tensors under several values of the symbols. If true, the recorded strides of the
  /// views are brought up to date (to "not known" where only numbers are known).
  bool try_restride(Value* root, LayoutChange change, const StridesFor& strides) const;

 private:
  AliasSets aliases_;
  std::vector<SymbolBindings> probes_;
};

}  // namespace halftone::compiler
