// The check at the door: do the inputs of a call fit what the model was exported for?
#pragma once

#include <ATen/core/ivalue.h>

#include <map>
#include <string>
#include <vector>

#include "halftone/graph/graph_module.h"

namespace halftone {

/// Made once from a module, then immutable. Throws kGuard with the input's name, the dimension, what was
/// expected and found.
class InputCheck {
 public:
  explicit InputCheck(const GraphModule& module);

  /// `inputs`: one for each user input. Binds the symbols of their sizes and checks dtypes, ranks, sizes,
  /// ranges, guards.
  SymbolBindings check(const std::vector<c10::IValue>& inputs) const;

 private:
  struct Expected {
    std::string name;
    ValueType type;
    std::optional<TensorMeta> meta;
    std::optional<SymExpr> expression;
    std::optional<c10::IValue> fixed;
  };
  struct Pending;
  void check_one(const Expected& expected, const c10::IValue& input, SymbolBindings& bindings,
                 std::vector<Pending>& pending) const;
  void check_size(const Pending& dimension, SymbolBindings& bindings, std::vector<Pending>& pending) const;
  void settle(std::vector<Pending> pending, SymbolBindings& bindings) const;
  void bind(const std::string& symbol, int64_t value, const Pending& where, SymbolBindings& bindings) const;

  std::vector<Expected> expected_;
  std::map<std::string, SymbolRange> ranges_;
  std::vector<ShapeGuard> guards_;
};

}  // namespace halftone
