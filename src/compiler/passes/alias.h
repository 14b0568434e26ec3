// Sets of values of a graph that may share memory, and the writes to that memory.
#pragma once

#include <unordered_map>

#include "base/pointer_map.h"
#include "halftone/graph/graph.h"

namespace halftone::compiler {

/// By the operators' alias annotations, and for operators that may give back their operand without saying so.
/// Errs on the side of sharing. Of the graph as it was when this was made; values that came later are unknown
/// and count as fresh.
class AliasSets {
 public:
  explicit AliasSets(const Graph& graph);

  bool is_written(const Value* value) const { return flags(value).written; }    ///< by some node
  bool is_returned(const Value* value) const { return flags(value).returned; }  ///< by the graph
  bool is_input(const Value* value) const { return flags(value).input; }        ///< of the graph
  bool is_user_input(const Value* value) const { return flags(value).user_input; }
  bool any_written() const { return any_written_; }
  bool may_share(const Value* a, const Value* b) const { return root(a) == root(b); }
  /// The same for all values of a set, and for no other: for tables of sets.
  const Value* set_of(const Value* value) const { return root(value); }
  /// Whether `copy`'s memory may become `original`'s: neither is written to, and no caller could see the
  /// difference.
  bool may_merge(const Value* copy, const Value* original) const;

 private:
  struct Flags {
    bool written = false, returned = false, input = false, user_input = false;
  };
  const Value* root(const Value* value) const;
  const Flags& flags(const Value* value) const;
  void unite(const Value* a, const Value* b);
  void visit(const Node& node);
  void mark_written(const Argument& argument);
  void share(const Node& node, const Argument& argument);

  PointerMap<const Value*> parents_;
  std::unordered_map<const Value*, Flags> flags_;
  bool any_written_ = false;
};

}  // namespace halftone::compiler
