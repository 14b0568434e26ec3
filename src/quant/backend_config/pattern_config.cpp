// BackendPatternConfig: one pattern with dtypes, observers and fusing, as JSON.
#include <array>

#include "base/errors.h"
#include "base/nearest.h"
#include "quant/backend_config/config_json.h"
#include "quant/backend_config/names.h"

namespace halftone {
namespace {

using backend_config::Json;

constexpr std::array kObservationNames = {
    std::pair{ObservationType::kOutputUsesDifferentObserver, "OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT"},
    std::pair{ObservationType::kOutputSharesInputObserver, "OUTPUT_SHARE_OBSERVER_WITH_INPUT"},
    std::pair{ObservationType::kInputOutputNotObserved, "INPUT_OUTPUT_NOT_OBSERVED"}};

/// What a config refers to by name: the key, what the name must stand for, and how it is set and read.
struct NamedPart {
  const char* key;
  ConfigNameKind kind;
  BackendPatternConfig& (BackendPatternConfig::*set)(std::string);
  const std::optional<std::string>& (BackendPatternConfig::*get)() const;
};
constexpr std::array kNamedParts = {
    NamedPart{"root_module", ConfigNameKind::kModule, &BackendPatternConfig::set_root_module,
              &BackendPatternConfig::root_module},
    NamedPart{"qat_module", ConfigNameKind::kModule, &BackendPatternConfig::set_qat_module,
              &BackendPatternConfig::qat_module},
    NamedPart{"reference_quantized_module_for_root", ConfigNameKind::kModule,
              &BackendPatternConfig::set_reference_quantized_module,
              &BackendPatternConfig::reference_quantized_module},
    NamedPart{"fused_module", ConfigNameKind::kModule, &BackendPatternConfig::set_fused_module,
              &BackendPatternConfig::fused_module},
    NamedPart{"fuser_method", ConfigNameKind::kFuserMethod, &BackendPatternConfig::set_fuser_method,
              &BackendPatternConfig::fuser_method},
    NamedPart{"root_node_getter", ConfigNameKind::kRootNodeGetter,
              &BackendPatternConfig::set_root_node_getter, &BackendPatternConfig::root_node_getter},
    NamedPart{"extra_inputs_getter", ConfigNameKind::kExtraInputsGetter,
              &BackendPatternConfig::set_extra_inputs_getter, &BackendPatternConfig::extra_inputs_getter}};
constexpr const char* kByTensorArgs = "num_tensor_args_to_observation_type";
constexpr const char* kInputIndices = "input_type_to_index";

std::string checked_name(const char* key, ConfigNameKind kind, std::string name) {
  const std::string problem = problem_with_name(kind, name);
  if (!problem.empty()) fail(ErrorCode::kInvalidArgument, "{}: {}", key, problem);
  return name;
}

std::string problem_with_input_type(std::string_view type) {
  const std::vector<std::string> known{"input", "weight", "bias"};
  if (std::find(known.begin(), known.end(), type) != known.end()) return {};
  return fmt::format("an argument is \"input\", \"weight\" or \"bias\", not \"{}\"", type);
}

int64_t read_count(const JsonCursor& place, const std::string& key) {
  const bool digits =
      !key.empty() && key.size() < 4 && key.find_first_not_of("0123456789") == std::string::npos;
  if (!digits) place.fail_here(fmt::format("\"{}\" is no number of tensors", key));
  return std::stoll(key);
}

void read_maps(const JsonCursor& place, BackendPatternConfig& config) {
  if (place.has(kByTensorArgs)) {
    const JsonCursor map = place.at(kByTensorArgs);
    std::map<int64_t, ObservationType> types;
    for (const std::string& key : map.keys())
      types[read_count(map, key)] = backend_config::read_observation(map.at(key));
    config.set_num_tensor_args_to_observation_type(std::move(types));
  }
  if (place.has(kInputIndices)) {
    const JsonCursor map = place.at(kInputIndices);
    std::map<std::string, int64_t> indices;
    for (const std::string& key : map.keys()) {
      if (const std::string problem = problem_with_input_type(key); !problem.empty()) map.fail_here(problem);
      indices[key] = map.at(key).get_int();
      if (indices[key] < 0) map.at(key).fail_here("an argument's position cannot be negative");
    }
    config.set_input_type_to_index(std::move(indices));
  }
}

Pattern pattern_of(const JsonCursor& place) {
  const bool plain = place.has("pattern");
  if (plain == place.has("pattern_complex_format"))
    place.fail_here("needs one of \"pattern\" and \"pattern_complex_format\"");
  const JsonCursor value = place.at(plain ? "pattern" : "pattern_complex_format");
  // The place's own checks come first: a pattern made from text alone does not know where it stands.
  if (plain) {
    backend_config::read_pattern(value);
    return Pattern::from_json(value.raw().dump());
  }
  backend_config::read_complex_pattern(value);
  return Pattern::from_complex_json(value.raw().dump());
}

}  // namespace

std::string_view to_string(ObservationType type) {
  for (const auto& [each, name] : kObservationNames) {
    if (each == type) return name;
  }
  return "?";
}

namespace backend_config {

Json observation_json(ObservationType type) {
  return std::string(to_string(type));
}

ObservationType read_observation(const JsonCursor& place) {
  const std::string name = place.get_string();
  std::vector<std::string> known;
  for (const auto& [type, each] : kObservationNames) {
    if (name == each) return type;
    known.emplace_back(each);
  }
  place.fail_here(fmt::format("there is no observation type \"{}\"{}", name, did_you_mean(name, known)));
}

Json pattern_config_json(const BackendPatternConfig& config) {
  Json json = Json::object();
  json[config.pattern().is_complex() ? "pattern_complex_format" : "pattern"] = pattern_json(config.pattern());
  json["observation_type"] = observation_json(config.observation_type());
  json["dtype_configs"] = Json::array();
  for (const DTypeConfig& each : config.dtype_configs()) json["dtype_configs"].push_back(dtype_json(each));
  for (const NamedPart& part : kNamedParts) {
    if (const auto& name = (config.*part.get)()) json[part.key] = *name;
  }
  for (const auto& [count, type] : config.num_tensor_args_to_observation_type())
    json[kByTensorArgs][std::to_string(count)] = observation_json(type);
  for (const auto& [type, index] : config.input_type_to_index()) json[kInputIndices][type] = index;
  return json;
}

BackendPatternConfig read_pattern_config(const JsonCursor& place) {
  std::vector<std::string> known{
      "pattern", "pattern_complex_format", "observation_type", "dtype_configs", kByTensorArgs, kInputIndices};
  for (const NamedPart& part : kNamedParts) known.emplace_back(part.key);
  expect_keys(place, known);
  BackendPatternConfig config(pattern_of(place));
  if (place.has("observation_type"))
    config.set_observation_type(read_observation(place.at("observation_type")));
  if (place.has("dtype_configs")) {
    const JsonCursor list = place.at("dtype_configs");
    if (!list.raw().is_array()) list.fail_here("expected an array");
    for (size_t i = 0; i < list.size(); ++i) config.add_dtype_config(read_dtype(list.at(i)));
  }
  for (const NamedPart& part : kNamedParts) {
    if (!place.has(part.key)) continue;
    const JsonCursor value = place.at(part.key);
    const std::string name = value.get_string();
    if (const std::string problem = problem_with_name(part.kind, name); !problem.empty())
      value.fail_here(problem);
    (config.*part.set)(name);
  }
  read_maps(place, config);
  return config;
}

}  // namespace backend_config

BackendPatternConfig::BackendPatternConfig(Pattern pattern) : pattern_(std::move(pattern)) {}

BackendPatternConfig& BackendPatternConfig::set_observation_type(ObservationType type) {
  observation_type_ = type;
  return *this;
}

BackendPatternConfig& BackendPatternConfig::add_dtype_config(const DTypeConfig& config) {
  dtype_configs_.push_back(config);
  return *this;
}

BackendPatternConfig& BackendPatternConfig::set_dtype_configs(std::vector<DTypeConfig> configs) {
  dtype_configs_ = std::move(configs);
  return *this;
}

BackendPatternConfig& BackendPatternConfig::set_root_module(std::string name) {
  root_module_ = checked_name("root_module", ConfigNameKind::kModule, std::move(name));
  return *this;
}

BackendPatternConfig& BackendPatternConfig::set_qat_module(std::string name) {
  qat_module_ = checked_name("qat_module", ConfigNameKind::kModule, std::move(name));
  return *this;
}

BackendPatternConfig& BackendPatternConfig::set_reference_quantized_module(std::string name) {
  reference_quantized_module_ =
      checked_name("reference_quantized_module_for_root", ConfigNameKind::kModule, std::move(name));
  return *this;
}

BackendPatternConfig& BackendPatternConfig::set_fused_module(std::string name) {
  fused_module_ = checked_name("fused_module", ConfigNameKind::kModule, std::move(name));
  return *this;
}

BackendPatternConfig& BackendPatternConfig::set_fuser_method(std::string name) {
  fuser_method_ = checked_name("fuser_method", ConfigNameKind::kFuserMethod, std::move(name));
  return *this;
}

BackendPatternConfig& BackendPatternConfig::set_root_node_getter(std::string name) {
  root_node_getter_ = checked_name("root_node_getter", ConfigNameKind::kRootNodeGetter, std::move(name));
  return *this;
}

BackendPatternConfig& BackendPatternConfig::set_extra_inputs_getter(std::string name) {
  extra_inputs_getter_ =
      checked_name("extra_inputs_getter", ConfigNameKind::kExtraInputsGetter, std::move(name));
  return *this;
}

BackendPatternConfig& BackendPatternConfig::set_num_tensor_args_to_observation_type(
    std::map<int64_t, ObservationType> types) {
  by_tensor_args_ = std::move(types);
  return *this;
}

BackendPatternConfig& BackendPatternConfig::set_input_type_to_index(std::map<std::string, int64_t> indices) {
  for (const auto& [type, index] : indices) {
    if (const std::string problem = problem_with_input_type(type); !problem.empty())
      fail(ErrorCode::kInvalidArgument, "{}: {}", kInputIndices, problem);
  }
  input_indices_ = std::move(indices);
  return *this;
}

std::string BackendPatternConfig::to_dict() const {
  return backend_config::pattern_config_json(*this).dump();
}

BackendPatternConfig BackendPatternConfig::from_dict(std::string_view json) {
  const auto document = parse_json(json, "pattern config");
  return backend_config::read_pattern_config(JsonCursor(document, "pattern config"));
}

}  // namespace halftone
