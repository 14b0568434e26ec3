// Which nodes read the tensors that a session keeps: whether a new content may be written over the old one.
#pragma once

#include "base/pointer_map.h"
#include "compiler/passes/alias.h"

namespace halftone::compiler {

/// A pure graph gives back the new content of a KV cache as a result, and whoever runs the graph copies it: all
/// of the cache for each token. Where nothing reads the old content after the node that makes the new one, that
/// node may write it in place. Made in one walk; each question walks the
/// inputs and the results.
class StateReaders {
 public:
  explicit StateReaders(const Graph& graph);

  /// Whether `output`, a result of `node`, is the new content of `state`, an input of the graph, and no
  /// later node reads the old content, no other result shows either of them.
  bool is_replaced_by(const Value* state, const Node& node, const Value* output) const;

 private:
  const Graph& graph_;
  AliasSets aliases_;
  PointerMap<size_t> places_;        ///< of the nodes, in order
  PointerMap<size_t> last_readers_;  ///< by set of values that may share memory
};

}  // namespace halftone::compiler
