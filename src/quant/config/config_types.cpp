#include "quant/config/config_types.h"

#include <fmt/ranges.h>

#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/errors.h"
#include "base/json.h"
#include "base/nearest.h"
#include "quant/config/builtin_fields.h"

namespace halftone {

namespace {

using Json = nlohmann::json;  // its objects are sorted by key: dump() is the canonical form

struct FieldRules {
  Json defaults;
  std::function<void(std::string_view)> check;
  std::vector<std::string> later = {};  ///< as in BuiltinFields
};

struct Registry {
  std::mutex mutex;
  std::map<std::string, FieldRules> types;
  Registry() {
    for (const BuiltinFields& builtin : builtin_fields()) {
      types[builtin.type] = {Json::parse(builtin.defaults), builtin.check, builtin.later};
    }
  }
};

Registry& registry() {
  static Registry the_registry;
  return the_registry;
}

/// A JSON object, or kInvalidArgument: what the file reader calls corrupt is a wrong argument here.
Json parse_object(std::string_view text, const std::string& what) {
  Json value;
  try {
    value = parse_json(text, what);
  } catch (const Error& error) {
    throw Error(ErrorCode::kInvalidArgument, error.what());
  }
  if (!value.is_object()) fail(ErrorCode::kInvalidArgument, "{}: fields must be a JSON object", what);
  return value;
}

std::vector<std::string> names_of(const std::map<std::string, FieldRules>& types) {
  std::vector<std::string> names;
  for (const auto& [name, rules] : types) names.push_back(name);
  return names;
}

/// A copy, because a registration may come meanwhile.
FieldRules rules_of(const std::string& type) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.types.find(type);
  if (found != all.types.end()) return found->second;
  const std::vector<std::string> known = names_of(all.types);
  fail(ErrorCode::kInvalidArgument, "unknown config type \"{}\"{}; known: {}", type,
       did_you_mean(type, known), fmt::join(known, ", "));
}

bool same_kind(const Json& a, const Json& b) {
  // An integer may stand for a number with a fraction, not the other way round.
  if (b.is_number_float()) return a.is_number();
  if (b.is_number_integer()) return a.is_number_integer();
  return a.type() == b.type();
}

void take_field(const std::string& type, const std::string& field, const Json& value, Json& fields) {
  if (!fields.contains(field)) {
    std::vector<std::string> known;
    for (const auto& [name, ignored] : fields.items()) known.push_back(name);
    fail(ErrorCode::kInvalidArgument, "{} has no field \"{}\"{}; known: {}", type, field,
         did_you_mean(field, known), known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")));
  }
  if (!same_kind(value, fields[field])) {
    fail(ErrorCode::kInvalidArgument, "{}: field \"{}\" must be a {}, as its default {}", type, field,
         fields[field].type_name(), fields[field].dump());
  }
  // 2 and 2.0 must have one canonical form.
  fields[field] = fields[field].is_number_float() ? Json(value.get<double>()) : value;
}

}  // namespace

void register_fields(const std::string& type, std::string_view default_fields,
                     std::function<void(std::string_view)> check) {
  if (type.empty()) fail(ErrorCode::kInvalidArgument, "a config type must have a name");
  Json defaults = parse_object(default_fields, type);
  if (defaults.contains("type"))
    fail(ErrorCode::kInvalidArgument, "{}: a field cannot be called \"type\"", type);
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  if (!all.types.try_emplace(type, FieldRules{std::move(defaults), std::move(check)}).second) {
    fail(ErrorCode::kInvalidArgument, "config type \"{}\" is registered already", type);
  }
}

std::string complete_fields(const std::string& type, std::string_view given_json) {
  const FieldRules rules = rules_of(type);
  Json fields = rules.defaults;
  const Json given = parse_object(given_json, type);
  for (const auto& [field, value] : given.items()) take_field(type, field, value, fields);
  for (const std::string& field : rules.later) {
    if (fields[field] == rules.defaults[field]) fields.erase(field);
  }
  std::string canonical = fields.dump();
  if (rules.check) rules.check(canonical);
  return canonical;
}

std::string default_fields(const std::string& type) {
  return rules_of(type).defaults.dump();
}

std::vector<std::string> config_types() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  return names_of(all.types);
}

}  // namespace halftone
