// Values of a chat template while it is rendered.
//
// They point into the memory of one Rendering, which frees all of them at its end: a template can tie values into circles,
// through namespaces and macros, and chains of any length, and neither may cost a leak or a deep recursion.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace halftone::jinja {

struct Statement;
struct Scope;
struct List;
struct Dict;
struct Namespace;
struct Macro;
struct Method;
struct Loop;
class Renderer;

/// What a name without a value gives: empty text, false, nothing to iterate over; most other uses are errors.
struct Undefined {
  std::string_view name;  ///< of what is missing, for messages
};
struct None {};

enum class Function { kNamespace, kRange, kDict, kRaiseException, kStrftimeNow };

using Value = std::variant<Undefined, None, bool, int64_t, double, const std::string*, const List*,
                           const Dict*, Namespace*, const Macro*, Function, const Method*, Loop*>;

enum class ListKind {
  kList,
  kTuple,
  kView,       ///< what keys(), values() and items() give: to go through, not to index or to write
  kGenerator,  ///< what some filters give: the same without a length, and always true
};

/// Never changed once it is made.
struct List {
  std::vector<Value> items;
  ListKind kind = ListKind::kList;
  bool is_stored() const { return kind == ListKind::kList || kind == ListKind::kTuple; }
};

/// In the order of insertion, as in Python. Keys are texts, numbers, booleans or None.
struct Dict {
  std::vector<std::pair<Value, Value>> entries;
};

/// The only value that a template can change: {% set ns.x = 1 %}.
struct Namespace {
  std::vector<std::pair<std::string, Value>> names;
};

struct Macro {
  const Statement* statement;
  Scope* scope;  ///< in which it was defined
};

/// A function of a value, such as "text".strip. The name is known to call_method().
struct Method {
  Value self;
  std::string_view name;
};

/// The variable `loop`. `ahead`: items that were taken from the iteration before their turn.
struct Loop {
  Renderer* renderer = nullptr;
  const Statement* statement = nullptr;
  Scope* scope = nullptr;  ///< around the loop
  std::vector<Value> items;
  size_t next = 0;  ///< of items
  std::deque<Value> ahead;
  Value previous, current;
  int64_t index0 = -1;
};

/// The variables of a template, a loop's body, a macro's call.
struct Scope {
  Scope* parent = nullptr;
  std::vector<std::pair<std::string_view, Value>> names;
  bool captured = false;  ///< a macro may need it after its end
};

template <typename T>
bool is(const Value& value) {
  return std::holds_alternative<T>(value);
}

/// nullptr if the value is no text.
inline const std::string* try_text(const Value& value) {
  const auto* text = std::get_if<const std::string*>(&value);
  return text == nullptr ? nullptr : *text;
}
inline const List* try_list(const Value& value) {
  const auto* list = std::get_if<const List*>(&value);
  return list == nullptr ? nullptr : *list;
}
inline const Dict* try_dict(const Value& value) {
  const auto* dict = std::get_if<const Dict*>(&value);
  return dict == nullptr ? nullptr : *dict;
}

/// "a text", "a list", …: for messages.
std::string_view kind_name(const Value& value);

}  // namespace halftone::jinja
