// QuantConfig: a type name and canonical fields.
#include <nlohmann/json.hpp>

#include "base/errors.h"
#include "base/json.h"
#include "base/sha256.h"
#include "halftone/quant/config.h"
#include "quant/config/builtin_fields.h"
#include "quant/config/config_types.h"

namespace halftone {

namespace {

using Json = nlohmann::json;

/// Checked on the way in, so that a config which exists is a sound one.
template <typename Config>
std::string checked_fields(const Config& config) {
  return complete_fields(type_of<Config>(), fields_of(config));
}

}  // namespace

QuantConfig::QuantConfig(const Int8WeightOnlyConfig& config)
    : QuantConfig(type_of<Int8WeightOnlyConfig>(), checked_fields(config)) {}
QuantConfig::QuantConfig(const Int8DynamicActivationInt8WeightConfig& config)
    : QuantConfig(type_of<Int8DynamicActivationInt8WeightConfig>(), checked_fields(config)) {}
QuantConfig::QuantConfig(const Int4WeightOnlyConfig& config)
    : QuantConfig(type_of<Int4WeightOnlyConfig>(), checked_fields(config)) {}
QuantConfig::QuantConfig(const Float8WeightOnlyConfig& config)
    : QuantConfig(type_of<Float8WeightOnlyConfig>(), checked_fields(config)) {}
QuantConfig::QuantConfig(const Float8DynamicActivationFloat8WeightConfig& config)
    : QuantConfig(type_of<Float8DynamicActivationFloat8WeightConfig>(), checked_fields(config)) {}
QuantConfig::QuantConfig(const IntxWeightOnlyConfig& config)
    : QuantConfig(type_of<IntxWeightOnlyConfig>(), checked_fields(config)) {}
QuantConfig::QuantConfig(const Bf16WeightOnlyConfig& config)
    : QuantConfig(type_of<Bf16WeightOnlyConfig>(), checked_fields(config)) {}
QuantConfig::QuantConfig(const NoQuantConfig& config)
    : QuantConfig(type_of<NoQuantConfig>(), checked_fields(config)) {}

QuantConfig QuantConfig::of_type(std::string_view type, std::string_view fields_json) {
  std::string name(type);
  std::string fields = complete_fields(name, fields_json);
  return {std::move(name), std::move(fields)};
}

QuantConfig QuantConfig::from_json(std::string_view json) {
  Json value;
  try {
    value = parse_json(json, "config");
  } catch (const Error& error) {
    throw Error(ErrorCode::kInvalidArgument, error.what());
  }
  if (!value.is_object() || !value.contains("type") || !value["type"].is_string()) {
    fail(ErrorCode::kInvalidArgument, "config: expected a JSON object with a string \"type\"");
  }
  const auto type = value["type"].get<std::string>();
  value.erase("type");
  return of_type(type, value.dump());
}

std::string QuantConfig::to_json() const {
  Json value = Json::parse(fields_);
  value["type"] = type_;
  return value.dump();
}

std::string QuantConfig::describe() const {
  const Json fields = Json::parse(fields_);
  const Json defaults = Json::parse(default_fields(type_));
  std::string changed;
  for (const auto& [name, value] : fields.items()) {
    if (defaults.contains(name) && defaults[name] == value) continue;
    changed += fmt::format("{}{}={}", changed.empty() ? "" : ", ", name,
                           value.is_string() ? value.get<std::string>() : value.dump());
  }
  return fmt::format("{}({})", type_, changed);
}

std::string QuantConfig::key() const {
  const std::string json = to_json();
  const Sha256Digest digest = sha256(std::as_bytes(std::span(json)));
  return fmt::format("{}-{}", type_, to_hex(digest).substr(0, 16));
}

bool QuantConfig::is_noquant() const {
  return type_ == type_of<NoQuantConfig>();
}

template <typename Config>
std::optional<Config> QuantConfig::as() const {
  if (type_ != type_of<Config>()) return std::nullopt;
  return config_of<Config>(fields_);
}

template std::optional<Int8WeightOnlyConfig> QuantConfig::as() const;
template std::optional<Int8DynamicActivationInt8WeightConfig> QuantConfig::as() const;
template std::optional<Int4WeightOnlyConfig> QuantConfig::as() const;
template std::optional<Float8WeightOnlyConfig> QuantConfig::as() const;
template std::optional<Float8DynamicActivationFloat8WeightConfig> QuantConfig::as() const;
template std::optional<IntxWeightOnlyConfig> QuantConfig::as() const;
template std::optional<Bf16WeightOnlyConfig> QuantConfig::as() const;
template std::optional<NoQuantConfig> QuantConfig::as() const;

}  // namespace halftone
