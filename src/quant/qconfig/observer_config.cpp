// ObserverConfig: names, ranges of dtypes, checks and JSON.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/errors.h"
#include "base/nearest.h"
#include "quant/backend_config/config_json.h"
#include "quant/qconfig/observer_json.h"

namespace halftone {
namespace {

constexpr std::array kSchemeNames = {
    std::pair{QScheme::kPerTensorAffine, "per_tensor_affine"},
    std::pair{QScheme::kPerTensorSymmetric, "per_tensor_symmetric"},
    std::pair{QScheme::kPerChannelAffine, "per_channel_affine"},
    std::pair{QScheme::kPerChannelSymmetric, "per_channel_symmetric"},
    std::pair{QScheme::kPerChannelAffineFloatQParams, "per_channel_affine_float_qparams"}};

constexpr std::array kObserverNames = {
    std::pair{ObserverKind::kMinMax, "MinMaxObserver"},
    std::pair{ObserverKind::kMovingAverageMinMax, "MovingAverageMinMaxObserver"},
    std::pair{ObserverKind::kPerChannelMinMax, "PerChannelMinMaxObserver"},
    std::pair{ObserverKind::kMovingAveragePerChannelMinMax, "MovingAveragePerChannelMinMaxObserver"},
    std::pair{ObserverKind::kHistogram, "HistogramObserver"},
    std::pair{ObserverKind::kFixed, "FixedQParamsObserver"},
    std::pair{ObserverKind::kPlaceholder, "PlaceholderObserver"},
    std::pair{ObserverKind::kNoop, "NoopObserver"},
    std::pair{ObserverKind::kReuseInput, "ReuseInputObserver"}};

template <typename Names>
std::string_view name_in(const Names& names, auto value) {
  for (const auto& [each, name] : names) {
    if (each == value) return name;
  }
  return "?";
}

template <typename Names>
auto value_in(const Names& names, const JsonCursor& place, std::string_view what) {
  const std::string text = place.get_string();
  std::vector<std::string> known;
  for (const auto& [value, name] : names) {
    if (text == name || text == std::string("torch.") + name) return value;
    known.emplace_back(name);
  }
  place.fail_here(fmt::format("there is no {} \"{}\"{}", what, text, did_you_mean(text, known)));
}

bool is_per_channel(ObserverKind kind) {
  return kind == ObserverKind::kPerChannelMinMax || kind == ObserverKind::kMovingAveragePerChannelMinMax;
}

bool watches(ObserverKind kind) {
  return is_per_channel(kind) || kind == ObserverKind::kMinMax ||
         kind == ObserverKind::kMovingAverageMinMax || kind == ObserverKind::kHistogram;
}

/// The keys that a kind has, beside "type".
std::vector<std::string> keys_of(ObserverKind kind) {
  if (kind == ObserverKind::kReuseInput) return {};
  if (kind == ObserverKind::kNoop) return {"dtype"};
  if (kind == ObserverKind::kFixed) return {"dtype", "quant_min", "quant_max", "scale", "zero_point"};
  std::vector<std::string> keys{"dtype", "quant_min", "quant_max", "eps", "is_dynamic"};
  if (!watches(kind)) return keys;
  keys.insert(keys.end(), {"qscheme", "reduce_range"});
  if (is_per_channel(kind)) keys.emplace_back("ch_axis");
  if (kind == ObserverKind::kHistogram) keys.emplace_back("bins");
  if (kind == ObserverKind::kMovingAverageMinMax || kind == ObserverKind::kMovingAveragePerChannelMinMax)
    keys.emplace_back("averaging_constant");
  return keys;
}

bool is_float(ConfigDType dtype) {
  return dtype == ConfigDType::kFloat32 || dtype == ConfigDType::kFloat16 ||
         dtype == ConfigDType::kBFloat16 || dtype == ConfigDType::kFloat64;
}

std::pair<int64_t, int64_t> range_of(ConfigDType dtype, bool reduced) {
  switch (dtype) {
    case ConfigDType::kQInt8:
    case ConfigDType::kInt8:
      return reduced ? std::pair<int64_t, int64_t>{-64, 63} : std::pair<int64_t, int64_t>{-128, 127};
    case ConfigDType::kQUInt8:
    case ConfigDType::kUInt8:
      return {0, reduced ? 127 : 255};
    case ConfigDType::kQInt32:
    case ConfigDType::kInt32:
      return {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
    case ConfigDType::kInt16:
      return {std::numeric_limits<int16_t>::min(), std::numeric_limits<int16_t>::max()};
    case ConfigDType::kQUInt4x2:
      return {0, 15};
    default:
      fail(ErrorCode::kInvalidArgument, "{} has no range of quantized values", to_string(dtype));
  }
}

/// Half, rounded down as Python does.
int64_t half_of(int64_t value) {
  return value >= 0 ? value / 2 : -((1 - value) / 2);
}

void check_observer(const JsonCursor& place, const ObserverConfig& config) {
  if (config.quant_min.has_value() != config.quant_max.has_value())
    place.fail_here("needs quant_min and quant_max, or neither");
  if (config.quant_min && *config.quant_min >= *config.quant_max)
    place.fail_here(
        fmt::format("quant_min {} is not below quant_max {}", *config.quant_min, *config.quant_max));
  const bool sound = std::isfinite(config.eps) && config.eps > 0 && std::isfinite(config.scale) &&
                     config.scale > 0 && config.averaging_constant > 0 && config.averaging_constant <= 1 &&
                     config.bins > 0 && config.bins <= (1 << 20);
  if (!sound) place.fail_here("eps, scale, averaging_constant and bins must be above 0 and in their range");
  const bool channels = config.qscheme == QScheme::kPerChannelAffine ||
                        config.qscheme == QScheme::kPerChannelSymmetric ||
                        config.qscheme == QScheme::kPerChannelAffineFloatQParams;
  if (watches(config.kind) && channels != is_per_channel(config.kind))
    place.fail_here(
        fmt::format("{} cannot have the scheme {}", to_string(config.kind), to_string(config.qscheme)));
  if (watches(config.kind) && is_float(config.dtype))
    place.fail_here(fmt::format("{} has no range of quantized values", to_string(config.dtype)));
}

}  // namespace

std::string_view to_string(QScheme scheme) {
  return name_in(kSchemeNames, scheme);
}

std::string_view to_string(ObserverKind kind) {
  return name_in(kObserverNames, kind);
}

ObserverConfig::ObserverConfig(ObserverKind kind) : kind(kind) {
  if (is_per_channel(kind)) qscheme = QScheme::kPerChannelAffine;
  if (kind == ObserverKind::kPlaceholder) dtype = ConfigDType::kFloat32;
  if (kind == ObserverKind::kNoop) dtype = ConfigDType::kFloat16;
  if (kind == ObserverKind::kFixed) {
    quant_min = 0;
    quant_max = 255;
  }
}

std::pair<int64_t, int64_t> ObserverConfig::range() const {
  if (!quant_min || !quant_max) return range_of(dtype, reduce_range);
  if (!reduce_range) return {*quant_min, *quant_max};
  return {half_of(*quant_min), half_of(*quant_max)};
}

namespace qconfig {

Json observer_json(const ObserverConfig& config) {
  const ObserverConfig usual(config.kind);
  Json json{{"type", std::string(to_string(config.kind))}};
  const auto put = [&](const char* key, const auto& value, const auto& usually) {
    if (value != usually) json[key] = value;
  };
  if (config.dtype != usual.dtype) json["dtype"] = std::string(to_string(config.dtype));
  if (config.qscheme != usual.qscheme) json["qscheme"] = std::string(to_string(config.qscheme));
  put("reduce_range", config.reduce_range, usual.reduce_range);
  if (config.quant_min != usual.quant_min || config.quant_max != usual.quant_max) {
    if (config.quant_min) json["quant_min"] = *config.quant_min;
    if (config.quant_max) json["quant_max"] = *config.quant_max;
  }
  put("eps", config.eps, usual.eps);
  put("averaging_constant", config.averaging_constant, usual.averaging_constant);
  put("ch_axis", config.ch_axis, usual.ch_axis);
  put("bins", config.bins, usual.bins);
  put("is_dynamic", config.is_dynamic, usual.is_dynamic);
  if (config.kind == ObserverKind::kFixed) {
    json["scale"] = config.scale;
    json["zero_point"] = config.zero_point;
  }
  return json;
}

ObserverConfig read_observer(const JsonCursor& place) {
  ObserverConfig config(value_in(kObserverNames, place.at("type"), "observer"));
  std::vector<std::string> known = keys_of(config.kind);
  known.emplace_back("type");
  backend_config::expect_keys(place, known);
  if (place.has("dtype")) {
    const std::string name = place.at("dtype").get_string();
    const auto dtype = config_dtype_by_name(name);
    if (!dtype) place.at("dtype").fail_here(fmt::format("there is no dtype \"{}\"", name));
    config.dtype = *dtype;
  }
  if (place.has("qscheme")) config.qscheme = value_in(kSchemeNames, place.at("qscheme"), "scheme");
  if (place.has("reduce_range")) config.reduce_range = place.at("reduce_range").get_bool();
  if (place.has("quant_min")) config.quant_min = place.at("quant_min").get_int();
  if (place.has("quant_max")) config.quant_max = place.at("quant_max").get_int();
  if (place.has("eps")) config.eps = place.at("eps").get_double();
  if (place.has("averaging_constant"))
    config.averaging_constant = place.at("averaging_constant").get_double();
  if (place.has("ch_axis")) config.ch_axis = place.at("ch_axis").get_int();
  if (place.has("bins")) config.bins = place.at("bins").get_int();
  if (place.has("is_dynamic")) config.is_dynamic = place.at("is_dynamic").get_bool();
  if (place.has("scale")) config.scale = place.at("scale").get_double();
  if (place.has("zero_point")) config.zero_point = place.at("zero_point").get_int();
  if (config.kind == ObserverKind::kFixed && (!place.has("scale") || !place.has("zero_point")))
    place.fail_here("needs a scale and a zero_point");
  check_observer(place, config);
  return config;
}

}  // namespace qconfig

std::string ObserverConfig::to_dict() const {
  return qconfig::observer_json(*this).dump();
}

ObserverConfig ObserverConfig::from_dict(std::string_view json) {
  const auto document = parse_json(json, "observer");
  return qconfig::read_observer(JsonCursor(document, "observer"));
}

}  // namespace halftone
