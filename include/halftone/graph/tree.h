// Nested arguments and results (tuples, lists, dicts) as a flat list of leaves and a description of the
// nesting.
#pragma once

#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

#include "halftone/base/api.h"

namespace halftone {

/// The shape of a nested value. Tensors, numbers, strings and None are leaves.
struct HALFTONE_API TreeSpec {
  enum class Kind { kLeaf, kTuple, kList, kDict };
  Kind kind = Kind::kLeaf;
  std::string type_name;  ///< the name in the exporter, for display: "builtins.dict", "Output (named tuple)"
  std::vector<std::string> keys;  ///< of a dict, or the field names of a named tuple; else empty
  std::vector<TreeSpec> children;
  /// How Python reaches each child if that is not [0] or ['a']: "[3]" for a key that is a number, ".a" for
  /// named tuples and dataclasses. Empty: the usual ones.
  std::vector<std::string> steps = {};

  static TreeSpec leaf() { return {}; }
  size_t leaf_count() const;
  /// The step from here to child `index`, as Python would write it.
  std::string step(size_t index) const;
  /// Each leaf's place as Python would write it: "[0]['logits']"; "" where the root is a leaf.
  std::vector<std::string> leaf_paths() const;
  bool operator==(const TreeSpec&) const = default;
};

/// The leaves of `value`, in order. kInvalidArgument, with the place, if the nesting is not the described
/// one. A dict's keys may come in any order; its leaves follow the spec's.
HALFTONE_API std::vector<c10::IValue> flatten(const TreeSpec& spec, const c10::IValue& value,
                                              const std::string& what);
/// The nesting of a value, with its leaves appended to `leaves`. kInvalidArgument for dicts with keys that
/// are no strings.
HALFTONE_API TreeSpec tree_of(const c10::IValue& value, std::vector<c10::IValue>& leaves);

/// The arguments of a call, taken apart.
struct FlatArgs {
  TreeSpec spec;  ///< a tuple
  std::vector<c10::IValue> leaves;
};
HALFTONE_API FlatArgs flatten_args(const std::vector<c10::IValue>& args);

/// The nested value, of the described containers: tuples, dicts with string keys, and lists. A list's element
/// type is what its elements have in common (Tensor, int, float, bool, str, lists of one of these), else Any.
HALFTONE_API c10::IValue unflatten(const TreeSpec& spec, const std::vector<c10::IValue>& leaves);

}  // namespace halftone
