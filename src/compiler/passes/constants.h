// The tensors of a graph that never change, and new ones.
#pragma once

#include <optional>
#include <set>
#include <unordered_set>

#include "compiler/passes/pass.h"

namespace halftone::compiler {

/// Parameters, buffers and constants that neither a node nor a mutation output writes. Valid while the
/// graph's inputs stay; add() keeps it valid.
class Constants {
 public:
  explicit Constants(PassContext& context);

  bool holds(const Value* value) const { return values_.contains(value); }
  /// Undefined where the value is not a constant.
  at::Tensor tensor(const Value* value) const;
  /// The number that an argument is: a literal, or a constant tensor without dimensions.
  std::optional<double> number(const Argument& argument) const;
  /// A new input of the graph, named after `hint`.
  Value* add(const std::string& hint, at::Tensor tensor);

 private:
  PassContext& context_;
  std::unordered_set<const Value*> values_;
};

}  // namespace halftone::compiler
