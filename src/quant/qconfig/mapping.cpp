// QConfigMapping: the qconfig of an operation, by layer, pattern, type and order.
#include <algorithm>
#include <regex>

#include "base/errors.h"
#include "base/nearest.h"
#include "quant/backend_config/config_json.h"
#include "quant/backend_config/names.h"
#include "quant/qconfig/observer_json.h"

namespace halftone {
namespace {

constexpr const char* kGlobalKey = "";
constexpr const char* kTypeKey = "object_type";
constexpr const char* kPatternKey = "module_name_regex";
constexpr const char* kNameKey = "module_name";
constexpr const char* kOrderKey = "module_name_object_type_order";

/// In the place of an equal key, else at the end: the order is that of the first setting.
template <typename Key>
void put(std::vector<std::pair<Key, QConfigMapping::Value>>& list, Key key, QConfigMapping::Value value) {
  const auto place =
      std::find_if(list.begin(), list.end(), [&](const auto& each) { return each.first == key; });
  if (place == list.end()) {
    list.emplace_back(std::move(key), std::move(value));
  } else {
    place->second = std::move(value);
  }
}

std::string checked_type(std::string type) {
  const std::string problem =
      type == kAnything ? "an operation cannot be anything" : problem_with_operation(type);
  if (!problem.empty()) fail(ErrorCode::kInvalidArgument, "{}: {}", kTypeKey, problem);
  return type;
}

std::regex compiled(const std::string& pattern) {
  try {
    return std::regex(pattern, std::regex::ECMAScript);
  } catch (const std::regex_error& error) {
    fail(ErrorCode::kInvalidArgument, "{}: \"{}\" is no regular expression: {}", kPatternKey, pattern,
         error.what());
  }
}

/// The layer, the one around it, and so on.
const QConfigMapping::Value* of_layer(const std::vector<std::pair<std::string, QConfigMapping::Value>>& list,
                                      std::string_view layer) {
  while (!layer.empty()) {
    for (const auto& [name, value] : list) {
      if (name == layer) return &value;
    }
    const size_t dot = layer.rfind('.');
    layer = dot == std::string_view::npos ? std::string_view() : layer.substr(0, dot);
  }
  return nullptr;
}

qconfig::Json pairs_json(const std::vector<std::pair<std::string, QConfigMapping::Value>>& list) {
  qconfig::Json json = qconfig::Json::array();
  for (const auto& [key, value] : list)
    json.push_back(qconfig::Json::array({key, qconfig::qconfig_json(value)}));
  return json;
}

/// Runs `set` for each entry of a list of lists of `length` elements; what it refuses gets the place.
template <typename Set>
void read_entries(const JsonCursor& root, const char* key, size_t length, Set set) {
  if (!root.has(key)) return;
  const JsonCursor list = root.at(key);
  if (!list.raw().is_array()) list.fail_here("expected an array");
  for (size_t i = 0; i < list.size(); ++i) {
    const JsonCursor entry = list.at(i);
    if (!entry.raw().is_array() || entry.size() != length)
      entry.fail_here(fmt::format("expected an array of {}", length));
    try {
      set(entry, qconfig::read_qconfig(entry.at(length - 1)));
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kInvalidArgument) entry.fail_here(error.what());
      throw;
    }
  }
}

}  // namespace

namespace qconfig {

Json qconfig_json(const QConfigMapping::Value& value) {
  if (!value) return nullptr;
  return Json{{"activation", observer_json(value->activation)}, {"weight", observer_json(value->weight)}};
}

QConfigMapping::Value read_qconfig(const JsonCursor& place) {
  if (place.is_null()) return std::nullopt;
  if (place.raw().is_string()) {
    const std::string name = place.get_string();
    const std::vector<std::string> known = qconfig_names();
    if (std::find(known.begin(), known.end(), name) == known.end())
      place.fail_here(fmt::format("there is no qconfig \"{}\"{}", name, did_you_mean(name, known)));
    return qconfig_by_name(name);
  }
  backend_config::expect_keys(place, {"activation", "weight"});
  return QConfig{read_observer(place.at("activation")), read_observer(place.at("weight"))};
}

}  // namespace qconfig

QConfigMapping& QConfigMapping::set_global(Value qconfig) {
  global_ = std::move(qconfig);
  return *this;
}

QConfigMapping& QConfigMapping::set_object_type(std::string type, Value qconfig) {
  put(types_, checked_type(std::move(type)), std::move(qconfig));
  return *this;
}

QConfigMapping& QConfigMapping::set_module_name_regex(std::string pattern, Value qconfig) {
  compiled(pattern);
  put(patterns_, std::move(pattern), std::move(qconfig));
  return *this;
}

QConfigMapping& QConfigMapping::set_module_name(std::string name, Value qconfig) {
  put(names_, std::move(name), std::move(qconfig));
  return *this;
}

QConfigMapping& QConfigMapping::set_module_name_object_type_order(std::string name, std::string type,
                                                                  int64_t index, Value qconfig) {
  if (index < 0) fail(ErrorCode::kInvalidArgument, "{}: the index {} is negative", kOrderKey, index);
  put(orders_, Order{std::move(name), checked_type(std::move(type)), index}, std::move(qconfig));
  return *this;
}

QConfigMapping::Value QConfigMapping::find(std::string_view layer, const std::vector<std::string>& types,
                                           int64_t index) const {
  const auto has_type = [&](const std::string& type) {
    return std::find(types.begin(), types.end(), type) != types.end();
  };
  for (const auto& [order, value] : orders_) {
    if (order.name == layer && order.index == index && has_type(order.type)) return value;
  }
  if (const Value* value = of_layer(names_, layer)) return *value;
  const std::string name(layer);
  for (const auto& [pattern, value] : patterns_) {
    if (std::regex_search(name, compiled(pattern), std::regex_constants::match_continuous)) return value;
  }
  for (const std::string& type : types) {
    for (const auto& [each, value] : types_) {
      if (each == type) return value;
    }
  }
  return global_;
}

std::string QConfigMapping::to_dict() const {
  qconfig::Json json{{kGlobalKey, qconfig::qconfig_json(global_)},
                     {kTypeKey, pairs_json(types_)},
                     {kPatternKey, pairs_json(patterns_)},
                     {kNameKey, pairs_json(names_)},
                     {kOrderKey, qconfig::Json::array()}};
  for (const auto& [order, value] : orders_)
    json[kOrderKey].push_back(
        qconfig::Json::array({order.name, order.type, order.index, qconfig::qconfig_json(value)}));
  return json.dump(1);
}

QConfigMapping QConfigMapping::from_dict(std::string_view json, std::string_view file) {
  const auto document = parse_json(json, file);
  const JsonCursor root(document, std::string(file));
  backend_config::expect_keys(root, {kGlobalKey, kTypeKey, kPatternKey, kNameKey, kOrderKey});
  QConfigMapping mapping;
  if (root.has(kGlobalKey)) mapping.set_global(qconfig::read_qconfig(root.at(kGlobalKey)));
  read_entries(root, kTypeKey, 2, [&](const JsonCursor& entry, Value value) {
    mapping.set_object_type(entry.at(size_t{0}).get_string(), std::move(value));
  });
  read_entries(root, kPatternKey, 2, [&](const JsonCursor& entry, Value value) {
    mapping.set_module_name_regex(entry.at(size_t{0}).get_string(), std::move(value));
  });
  read_entries(root, kNameKey, 2, [&](const JsonCursor& entry, Value value) {
    mapping.set_module_name(entry.at(size_t{0}).get_string(), std::move(value));
  });
  read_entries(root, kOrderKey, 4, [&](const JsonCursor& entry, Value value) {
    mapping.set_module_name_object_type_order(entry.at(size_t{0}).get_string(), entry.at(1).get_string(),
                                              entry.at(2).get_int(), std::move(value));
  });
  return mapping;
}

}  // namespace halftone
