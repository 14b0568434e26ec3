// BackendConfig: patterns and their configs, as text and JSON.
#include "halftone/ptq/backend_config.h"

#include <algorithm>

#include "base/errors.h"
#include "halftone/cli/table.h"
#include "quant/backend_config/config_json.h"

namespace halftone {
namespace {

constexpr int kTextWidth = 100;

std::string dtype_text(const DTypeWithConstraints& value) {
  if (!value.dtype) return "-";
  std::string text(to_string(*value.dtype));
  DTypeWithConstraints plain;
  plain.dtype = value.dtype;
  return value == plain ? text : text + "*";
}

/// "quint8 x qint8 -> quint8", "… dynamic".
std::string dtypes_text(const DTypeConfig& config) {
  std::string text = dtype_text(config.input);
  if (config.weight.dtype) text += " x " + dtype_text(config.weight);
  text += " -> " + dtype_text(config.output);
  return config.is_dynamic.value_or(false) ? text + ", dynamic" : text;
}

std::string_view observation_text(ObservationType type) {
  switch (type) {
    case ObservationType::kOutputUsesDifferentObserver:
      return "own";
    case ObservationType::kOutputSharesInputObserver:
      return "shared";
    case ObservationType::kInputOutputNotObserved:
      return "none";
  }
  return "?";
}

}  // namespace

BackendConfig& BackendConfig::set_name(std::string name) {
  name_ = std::move(name);
  return *this;
}

BackendConfig& BackendConfig::set_backend_pattern_config(BackendPatternConfig config) {
  const auto place = std::find_if(configs_.begin(), configs_.end(), [&](const BackendPatternConfig& each) {
    return each.pattern() == config.pattern();
  });
  if (place == configs_.end()) {
    configs_.push_back(std::move(config));
  } else {
    *place = std::move(config);
  }
  return *this;
}

BackendConfig& BackendConfig::set_backend_pattern_configs(const std::vector<BackendPatternConfig>& configs) {
  for (const BackendPatternConfig& config : configs) set_backend_pattern_config(config);
  return *this;
}

const BackendPatternConfig* BackendConfig::find(const Pattern& pattern) const {
  for (const BackendPatternConfig& each : configs_) {
    if (each.pattern() == pattern) return &each;
  }
  return nullptr;
}

std::string BackendConfig::to_dict() const {
  backend_config::Json json{{"name", name_}, {"configs", backend_config::Json::array()}};
  for (const BackendPatternConfig& each : configs_)
    json["configs"].push_back(backend_config::pattern_config_json(each));
  return json.dump(1);
}

BackendConfig BackendConfig::from_dict(std::string_view json, std::string_view file) {
  const auto document = parse_json(json, file);
  const JsonCursor root(document, std::string(file));
  backend_config::expect_keys(root, {"name", "configs"});
  BackendConfig config(root.has("name") ? root.at("name").get_string() : std::string());
  if (!root.has("configs")) return config;
  const JsonCursor list = root.at("configs");
  if (!list.raw().is_array()) list.fail_here("expected an array");
  for (size_t i = 0; i < list.size(); ++i)
    config.set_backend_pattern_config(backend_config::read_pattern_config(list.at(i)));
  return config;
}

std::string BackendConfig::to_text() const {
  std::vector<Row> rows;
  for (const BackendPatternConfig& each : configs_) {
    std::string pattern = each.pattern().to_text();
    std::string observed(observation_text(each.observation_type()));
    if (each.dtype_configs().empty()) rows.push_back({pattern, observed, "-"});
    for (const DTypeConfig& dtypes : each.dtype_configs()) {
      rows.push_back({pattern, observed, dtypes_text(dtypes)});
      pattern.clear();
      observed.clear();
    }
  }
  return fmt::format(
      "{}: {} patterns (* with constraints)\n{}", name_, configs_.size(),
      render_table(
          {{"pattern", Align::kLeft, Cut::kMiddle, 20}, {"output's observer"}, {"input x weight -> output"}},
          rows, kTextWidth));
}

}  // namespace halftone
