// Dtypes of backend configs with their bounds, and their JSON.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/errors.h"
#include "base/nearest.h"
#include "quant/backend_config/config_json.h"

namespace halftone {
namespace {

struct NamedDType {
  ConfigDType dtype;
  std::string_view name;
};

constexpr std::array kDTypeNames = {
    NamedDType{ConfigDType::kFloat32, "float32"},   NamedDType{ConfigDType::kFloat16, "float16"},
    NamedDType{ConfigDType::kBFloat16, "bfloat16"}, NamedDType{ConfigDType::kFloat64, "float64"},
    NamedDType{ConfigDType::kQUInt8, "quint8"},     NamedDType{ConfigDType::kQInt8, "qint8"},
    NamedDType{ConfigDType::kQInt32, "qint32"},     NamedDType{ConfigDType::kQUInt4x2, "quint4x2"},
    NamedDType{ConfigDType::kUInt8, "uint8"},       NamedDType{ConfigDType::kInt8, "int8"},
    NamedDType{ConfigDType::kInt16, "int16"},       NamedDType{ConfigDType::kInt32, "int32"}};

/// Members of DTypeWithConstraints that are numbers, by their keys.
struct Bound {
  const char* key;
  std::optional<double> DTypeWithConstraints::*member;
};
constexpr std::array kBounds = {Bound{"quant_min_lower_bound", &DTypeWithConstraints::quant_min_lower_bound},
                                Bound{"quant_max_upper_bound", &DTypeWithConstraints::quant_max_upper_bound},
                                Bound{"scale_min_lower_bound", &DTypeWithConstraints::scale_min_lower_bound},
                                Bound{"scale_max_upper_bound", &DTypeWithConstraints::scale_max_upper_bound},
                                Bound{"scale_exact_match", &DTypeWithConstraints::scale_exact_match}};
constexpr const char* kZeroPointKey = "zero_point_exact_match";

ConfigDType read_dtype_name(const JsonCursor& place) {
  const std::string name = place.get_string();
  const auto dtype = config_dtype_by_name(name);
  if (dtype) return *dtype;
  std::vector<std::string> known;
  for (const NamedDType& each : kDTypeNames) known.emplace_back(each.name);
  place.fail_here(fmt::format("there is no dtype \"{}\"{}", name, did_you_mean(name, known)));
}

void check_bounds(const JsonCursor& place, const DTypeWithConstraints& value) {
  for (const Bound& bound : kBounds) {
    const auto& number = value.*bound.member;
    if (number && !std::isfinite(*number)) place.fail_here(fmt::format("{} must be finite", bound.key));
  }
  const auto in_order = [&](const auto& low, const auto& high, std::string_view what) {
    if (low && high && *low > *high)
      place.fail_here(fmt::format("the bounds of {} leave nothing: {} is above {}", what, *low, *high));
  };
  in_order(value.quant_min_lower_bound, value.quant_max_upper_bound, "quantized values");
  in_order(value.scale_min_lower_bound, value.scale_max_upper_bound, "the scale");
  if (value.scale_exact_match && *value.scale_exact_match <= 0)
    place.fail_here("scale_exact_match must be above 0");
}

DTypeWithConstraints read_constraints(const JsonCursor& place) {
  DTypeWithConstraints value;
  if (!place.raw().is_object()) {
    value.dtype = read_dtype_name(place);
    return value;
  }
  std::vector<std::string> known{"dtype", kZeroPointKey};
  for (const Bound& bound : kBounds) known.emplace_back(bound.key);
  backend_config::expect_keys(place, known);
  value.dtype = read_dtype_name(place.at("dtype"));
  for (const Bound& bound : kBounds) {
    if (place.has(bound.key)) value.*bound.member = place.at(bound.key).get_double();
  }
  if (place.has(kZeroPointKey)) value.zero_point_exact_match = place.at(kZeroPointKey).get_int();
  check_bounds(place, value);
  return value;
}

/// A whole number without a point: Python's configs have integers there.
backend_config::Json bound_json(double value) {
  constexpr double kMax = 1e15;
  if (std::abs(value) < kMax && value == std::trunc(value)) return static_cast<int64_t>(value);
  return value;
}

backend_config::Json constraints_json(const DTypeWithConstraints& value) {
  const std::string dtype(to_string(*value.dtype));
  backend_config::Json json{{"dtype", dtype}};
  for (const Bound& bound : kBounds) {
    if (value.*bound.member) json[bound.key] = bound_json(*(value.*bound.member));
  }
  if (value.zero_point_exact_match) json[kZeroPointKey] = *value.zero_point_exact_match;
  return json.size() > 1 ? json : backend_config::Json(dtype);
}

}  // namespace

std::string_view to_string(ConfigDType dtype) {
  return std::find_if(kDTypeNames.begin(), kDTypeNames.end(),
                      [&](const NamedDType& each) { return each.dtype == dtype; })
      ->name;
}

std::optional<ConfigDType> config_dtype_by_name(std::string_view name) {
  if (name.starts_with("torch.")) name.remove_prefix(6);
  if (name == "float") return ConfigDType::kFloat32;
  if (name == "half") return ConfigDType::kFloat16;
  for (const NamedDType& each : kDTypeNames) {
    if (each.name == name) return each.dtype;
  }
  return std::nullopt;
}

namespace backend_config {

void expect_keys(const JsonCursor& place, const std::vector<std::string>& known) {
  for (const std::string& key : place.keys()) {
    if (std::find(known.begin(), known.end(), key) == known.end())
      place.fail_here(fmt::format("unknown key \"{}\"{}", key, did_you_mean(key, known)));
  }
}

Json dtype_json(const DTypeConfig& config) {
  Json json = Json::object();
  if (config.input.dtype) json["input_dtype"] = constraints_json(config.input);
  if (config.output.dtype) json["output_dtype"] = constraints_json(config.output);
  if (config.weight.dtype) json["weight_dtype"] = constraints_json(config.weight);
  if (config.bias) json["bias_dtype"] = std::string(to_string(*config.bias));
  if (config.is_dynamic) json["is_dynamic"] = *config.is_dynamic;
  return json;
}

DTypeConfig read_dtype(const JsonCursor& place) {
  expect_keys(place, {"input_dtype", "output_dtype", "weight_dtype", "bias_dtype", "is_dynamic"});
  DTypeConfig config;
  if (place.has("input_dtype")) config.input = read_constraints(place.at("input_dtype"));
  if (place.has("output_dtype")) config.output = read_constraints(place.at("output_dtype"));
  if (place.has("weight_dtype")) config.weight = read_constraints(place.at("weight_dtype"));
  if (place.has("bias_dtype")) config.bias = read_dtype_name(place.at("bias_dtype"));
  if (place.has("is_dynamic")) config.is_dynamic = place.at("is_dynamic").get_bool();
  return config;
}

}  // namespace backend_config

std::string DTypeConfig::to_dict() const {
  return backend_config::dtype_json(*this).dump();
}

DTypeConfig DTypeConfig::from_dict(std::string_view json) {
  const auto document = parse_json(json, "dtype config");
  return backend_config::read_dtype(JsonCursor(document, "dtype config"));
}

}  // namespace halftone
