#include "capture/treespec.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/errors.h"
#include "base/json.h"

namespace halftone {
namespace {

using nlohmann::json;

constexpr int64_t kTreespecVersion = 1;
constexpr JsonLimits kLimits{.max_depth = 128, .max_bytes = size_t{16} << 20, .max_values = 1'000'000};

/// A dict's keys: strings, or integers, which are written as their digits. Nothing for other kinds.
std::optional<std::vector<std::string>> try_keys(const json& list) {
  if (!list.is_array()) return std::nullopt;
  std::vector<std::string> keys;
  std::set<std::string> seen;
  for (const json& key : list) {
    if (!key.is_string() && !key.is_number_integer()) return std::nullopt;
    keys.push_back(key.is_string() ? key.get<std::string>() : key.dump());
    if (!seen.insert(keys.back()).second) return std::nullopt;
  }
  return keys;
}

class SpecReader {
 public:
  SpecReader(const std::string& place, const NamedTupleFields& fields) : place_(place), fields_(fields) {}

  TreeSpec read(const JsonCursor& cursor) const {
    if (cursor.at("type").is_null()) {
      if (cursor.at("children_spec").size() != 0) cursor.fail_here("a leaf with children");
      return TreeSpec::leaf();
    }
    TreeSpec spec;
    spec.type_name = cursor.at("type").get_string();
    const JsonCursor children = cursor.at("children_spec");
    if (!children.raw().is_array()) children.fail_here("expected an array");
    for (size_t i = 0; i < children.size(); ++i) spec.children.push_back(read(children.at(i)));
    set_kind(spec, cursor);
    if (spec.kind == TreeSpec::Kind::kDict && spec.keys.size() != spec.children.size()) {
      cursor.fail_here(fmt::format("{} keys for {} children", spec.keys.size(), spec.children.size()));
    }
    return spec;
  }

 private:
  json context(const JsonCursor& cursor) const {
    return parse_json(cursor.at("context").get_string(), cursor.path() + ".context", kLimits);
  }

  void set_kind(TreeSpec& spec, const JsonCursor& cursor) const {
    const std::string& type = spec.type_name;
    if (type == "builtins.tuple") {
      spec.kind = TreeSpec::Kind::kTuple;
    } else if (type == "builtins.list" || type == "collections.deque") {
      spec.kind = TreeSpec::Kind::kList;
    } else if (type == "collections.namedtuple") {
      set_named_tuple(spec, cursor);
    } else if (type == "builtins.dict" || type == "collections.OrderedDict" ||
               type == "collections.defaultdict") {
      spec.kind = TreeSpec::Kind::kDict;
      json keys = context(cursor);
      if (type == "collections.defaultdict")
        keys = JsonCursor(keys, cursor.path() + ".context").at("dict_context").raw();
      auto names = try_keys(keys);
      if (!names) cursor.fail_here("the keys are not distinct strings or integers");
      spec.keys = std::move(*names);
      set_number_steps(spec, keys);
    } else {
      set_registered(spec, cursor);
    }
  }

  /// Keys that are numbers are not quoted.
  static void set_number_steps(TreeSpec& spec, const json& keys) {
    if (std::none_of(keys.begin(), keys.end(), [](const json& key) { return key.is_number(); })) return;
    std::vector<std::string> steps;
    for (size_t i = 0; i < keys.size(); ++i)
      steps.push_back(keys[i].is_number() ? "[" + spec.keys[i] + "]" : spec.step(i));
    spec.steps = std::move(steps);
  }

  static void set_attribute_steps(TreeSpec& spec) {
    for (const std::string& key : spec.keys) spec.steps.push_back("." + key);
  }

  void set_named_tuple(TreeSpec& spec, const JsonCursor& cursor) const {
    const std::string name = cursor.at("context").get_string();
    const auto found = fields_.find(name);
    if (found == fields_.end())
      cursor.fail_here(fmt::format("the fields of named tuple {} are not in the file", name));
    if (found->second.size() != spec.children.size()) {
      cursor.fail_here(
          fmt::format("{} has {} fields and {} children", name, found->second.size(), spec.children.size()));
    }
    spec.kind = TreeSpec::Kind::kTuple;
    spec.keys = found->second;
    set_attribute_steps(spec);
    spec.type_name = name + " (named tuple)";
  }

  /// A type that its owner registered with torch's pytree. Dataclass-like ones give their field names as the
  /// context (a list, or a list of given names and a list of names that are None); others cannot be known.
  void set_registered(TreeSpec& spec, const JsonCursor& cursor) const {
    json names;
    try {
      names = context(cursor);
    } catch (const Error&) {
      names = nullptr;  // a context of the owner's own making
    }
    if (names.is_array() && names.size() == 2 && names[0].is_array() && names[1].is_array())
      names = json(names[0]);
    auto keys = try_keys(names);
    if (!keys || keys->size() != spec.children.size()) {
      fail(ErrorCode::kUnsupported, "{}: inputs or outputs of type {} cannot be taken apart without Python",
           cursor.path(), spec.type_name);
    }
    spec.kind = TreeSpec::Kind::kDict;
    spec.keys = std::move(*keys);
    set_attribute_steps(spec);
  }

  const std::string& place_;
  const NamedTupleFields& fields_;
};

}  // namespace

TreeSpec parse_treespec(std::string_view text, const std::string& place, const NamedTupleFields& fields) {
  const json document = parse_json(text, place, kLimits);
  const JsonCursor root(document, place);
  if (const int64_t version = root.at(size_t{0}).get_int(); version != kTreespecVersion) {
    fail(ErrorCode::kUnsupported, "{}: version {} of pytree specs; this program knows {}", place, version,
         kTreespecVersion);
  }
  if (root.size() != 2) root.fail_here("expected a version and a spec");
  return SpecReader(place, fields).read(root.at(size_t{1}));
}

CallSpec make_call_spec(TreeSpec in_spec, TreeSpec out_spec, const std::string& place) {
  using Kind = TreeSpec::Kind;
  if (in_spec.kind != Kind::kTuple || in_spec.children.size() != 2 ||
      in_spec.children[0].kind != Kind::kTuple || in_spec.children[1].kind != Kind::kDict) {
    fail(ErrorCode::kCorruptFile,
         "{}: in_spec is not a tuple of positional arguments and a dict of keyword arguments", place);
  }
  return {.args = std::move(in_spec.children[0]),
          .kwargs = std::move(in_spec.children[1]),
          .result = std::move(out_spec)};
}

}  // namespace halftone
