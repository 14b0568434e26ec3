// TreeSpec: the nesting of arguments and results.
#include "halftone/graph/tree.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/errors.h"

namespace halftone {
namespace {

void collect_paths(const TreeSpec& spec, const std::string& prefix, std::vector<std::string>& paths) {
  if (spec.kind == TreeSpec::Kind::kLeaf) {
    paths.push_back(prefix);
    return;
  }
  for (size_t i = 0; i < spec.children.size(); ++i)
    collect_paths(spec.children[i], prefix + spec.step(i), paths);
}

/// As Python's repr writes a string of printable characters.
std::string python_quoted(const std::string& text) {
  const char quote = text.find('\'') != std::string::npos && text.find('"') == std::string::npos ? '"' : '\'';
  std::string quoted(1, quote);
  for (const char letter : text) {
    if (letter == quote || letter == '\\') quoted += '\\';
    quoted += letter;
  }
  return quoted + quote;
}

std::vector<c10::IValue> elements_of(const TreeSpec& spec, const c10::IValue& value,
                                     const std::string& where) {
  if (value.isTuple()) return value.toTupleRef().elements().vec();
  if (value.isTensorList() || value.isList()) {
    const auto list = value.toList();
    std::vector<c10::IValue> items;
    for (size_t i = 0; i < list.size(); ++i) items.push_back(list.get(i));
    return items;
  }
  fail(ErrorCode::kInvalidArgument, "{}: expected a {} of {}, found {}", where,
       spec.kind == TreeSpec::Kind::kTuple ? "tuple" : "list", spec.children.size(), value.tagKind());
}

std::vector<c10::IValue> members_of(const TreeSpec& spec, const c10::IValue& value,
                                    const std::string& where) {
  if (!value.isGenericDict()) {
    fail(ErrorCode::kInvalidArgument, "{}: expected a dict with keys {}, found {}", where,
         fmt::join(spec.keys, ", "), value.tagKind());
  }
  const auto dict = value.toGenericDict();
  for (const auto& item : dict) {
    const bool known = item.key().isString() && std::find(spec.keys.begin(), spec.keys.end(),
                                                          item.key().toStringRef()) != spec.keys.end();
    if (!known) {
      fail(ErrorCode::kInvalidArgument, "{}: unexpected key {}; the model takes {}", where,
           item.key().isString() ? item.key().toStringRef() : "that is no string",
           fmt::join(spec.keys, ", "));
    }
  }
  std::vector<c10::IValue> items;
  for (const std::string& key : spec.keys) {
    const auto found = dict.find(key);
    if (found == dict.end()) fail(ErrorCode::kInvalidArgument, "{}: key {} is missing", where, key);
    items.push_back(found->value());
  }
  return items;
}

void flatten_into(const TreeSpec& spec, const c10::IValue& value, const std::string& where,
                  std::vector<c10::IValue>& leaves) {
  if (spec.kind == TreeSpec::Kind::kLeaf) {
    leaves.push_back(value);
    return;
  }
  const bool is_dict = spec.kind == TreeSpec::Kind::kDict;
  const auto items = is_dict ? members_of(spec, value, where) : elements_of(spec, value, where);
  if (items.size() != spec.children.size()) {
    fail(ErrorCode::kInvalidArgument, "{}: expected {} elements, found {}", where, spec.children.size(),
         items.size());
  }
  for (size_t i = 0; i < items.size(); ++i) {
    flatten_into(spec.children[i], items[i], where + spec.step(i), leaves);
  }
}

/// What the elements of a list have in common; a list without any is taken for one of tensors.
c10::TypePtr element_type(const std::vector<c10::IValue>& items) {
  const auto all = [&](auto is) { return std::all_of(items.begin(), items.end(), is); };
  if (all([](const c10::IValue& item) { return item.isTensor(); })) return c10::TensorType::get();
  if (all([](const c10::IValue& item) { return item.isInt(); })) return c10::IntType::get();
  if (all([](const c10::IValue& item) { return item.isDouble(); })) return c10::FloatType::get();
  if (all([](const c10::IValue& item) { return item.isBool(); })) return c10::BoolType::get();
  if (all([](const c10::IValue& item) { return item.isString(); })) return c10::StringType::get();
  const auto inner = [](const c10::IValue& item) {
    return item.isList() ? item.toList().elementType() : c10::TypePtr();
  };
  const c10::TypePtr first = inner(items.front());
  if (first && all([&](const c10::IValue& item) { return inner(item) && *inner(item) == *first; }))
    return c10::ListType::create(first);
  return c10::AnyType::get();
}

c10::IValue build(const TreeSpec& spec, const std::vector<c10::IValue>& leaves, size_t& next) {
  if (spec.kind == TreeSpec::Kind::kLeaf) return leaves.at(next++);
  if (spec.kind == TreeSpec::Kind::kDict) {
    c10::impl::GenericDict dict(c10::StringType::get(), c10::AnyType::get());
    for (size_t i = 0; i < spec.children.size(); ++i)
      dict.insert(spec.keys.at(i), build(spec.children[i], leaves, next));
    return dict;
  }
  std::vector<c10::IValue> items;
  for (const TreeSpec& child : spec.children) items.push_back(build(child, leaves, next));
  if (spec.kind == TreeSpec::Kind::kTuple) return c10::ivalue::Tuple::create(std::move(items));
  c10::impl::GenericList list(element_type(items));
  for (c10::IValue& item : items) list.push_back(std::move(item));
  return list;
}

}  // namespace

size_t TreeSpec::leaf_count() const {
  if (kind == Kind::kLeaf) return 1;
  size_t count = 0;
  for (const TreeSpec& child : children) count += child.leaf_count();
  return count;
}

std::string TreeSpec::step(size_t index) const {
  if (!steps.empty()) return steps.at(index);
  return kind == Kind::kDict ? fmt::format("[{}]", python_quoted(keys.at(index)))
                             : fmt::format("[{}]", index);
}

std::vector<std::string> TreeSpec::leaf_paths() const {
  std::vector<std::string> paths;
  collect_paths(*this, "", paths);
  return paths;
}

std::vector<c10::IValue> flatten(const TreeSpec& spec, const c10::IValue& value, const std::string& what) {
  std::vector<c10::IValue> leaves;
  flatten_into(spec, value, what, leaves);
  return leaves;
}

TreeSpec tree_of(const c10::IValue& value, std::vector<c10::IValue>& leaves) {
  TreeSpec spec;
  const auto add = [&](const c10::IValue& item) { spec.children.push_back(tree_of(item, leaves)); };
  if (value.isTuple()) {
    spec.kind = TreeSpec::Kind::kTuple;
    spec.type_name = "tuple";
    for (const c10::IValue& item : value.toTupleRef().elements()) add(item);
  } else if (value.isGenericDict()) {
    spec.kind = TreeSpec::Kind::kDict;
    spec.type_name = "dict";
    for (const auto& item : value.toGenericDict()) {
      if (!item.key().isString()) fail(ErrorCode::kInvalidArgument, "a dict with keys that are no strings");
      spec.keys.push_back(item.key().toStringRef());
      add(item.value());
    }
  } else if (value.isList()) {
    spec.kind = TreeSpec::Kind::kList;
    spec.type_name = "list";
    const auto list = value.toList();
    for (size_t i = 0; i < list.size(); ++i) add(list.get(i));
  } else {
    leaves.push_back(value);
  }
  return spec;
}

FlatArgs flatten_args(const std::vector<c10::IValue>& args) {
  FlatArgs flat;
  flat.spec.kind = TreeSpec::Kind::kTuple;
  flat.spec.type_name = "tuple";
  for (const c10::IValue& arg : args) flat.spec.children.push_back(tree_of(arg, flat.leaves));
  return flat;
}

c10::IValue unflatten(const TreeSpec& spec, const std::vector<c10::IValue>& leaves) {
  if (leaves.size() != spec.leaf_count()) {
    fail(ErrorCode::kInvalidArgument, "a nested value of {} leaves cannot be made from {}", spec.leaf_count(),
         leaves.size());
  }
  size_t next = 0;
  return build(spec, leaves, next);
}

}  // namespace halftone
