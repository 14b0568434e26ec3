#include "quant/config/builtin_fields.h"

#include <fmt/ranges.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/errors.h"

namespace halftone {

namespace {

using Json = nlohmann::json;

template <typename Enum>
struct EnumName {
  Enum value;
  const char* name;
};

constexpr std::array<EnumName<Int4Activations>, 2> kInt4Activations{
    {{Int4Activations::kFloat, "float"}, {Int4Activations::kInt8, "int8"}}};
constexpr std::array<EnumName<Int4Rounding>, 2> kInt4Roundings{
    {{Int4Rounding::kNearest, "nearest"}, {Int4Rounding::kSearch, "search"}}};
constexpr std::array<EnumName<Granularity>, 2> kGranularities{
    {{Granularity::kPerRow, "per_row"}, {Granularity::kPerTensor, "per_tensor"}}};

template <typename Enum>
std::string name_of(Enum value, const std::array<EnumName<Enum>, 2>& table) {
  for (const auto& entry : table) {
    if (entry.value == value) return entry.name;
  }
  fail(ErrorCode::kInvalidArgument, "a config holds {}, which is none of its values",
       static_cast<int>(value));
}

template <typename Enum>
Enum value_of(const Json& fields, const char* field, const std::array<EnumName<Enum>, 2>& table) {
  const std::string name = fields.at(field).get<std::string>();
  for (const auto& entry : table) {
    if (name == entry.name) return entry.value;
  }
  fail(ErrorCode::kInvalidArgument, "{} must be \"{}\" or \"{}\", not \"{}\"", field, table[0].name,
       table[1].name, name);
}

int int_of(const Json& fields, const char* field) {
  const auto value = fields.at(field).get<int64_t>();
  if (value < -1'000'000 || value > 1'000'000)
    fail(ErrorCode::kInvalidArgument, "{} {} is out of range", field, value);
  return static_cast<int>(value);
}

template <size_t count>
void one_of(const char* type, const char* field, int value, const std::array<int, count>& allowed) {
  for (const int each : allowed) {
    if (value == each) return;
  }
  fail(ErrorCode::kInvalidArgument, "{}: {} must be one of {}, not {}", type, field, fmt::join(allowed, ", "),
       value);
}

void check(const Int8WeightOnlyConfig&) {}
void check(const Bf16WeightOnlyConfig&) {}
void check(const NoQuantConfig&) {}
void check(const Float8WeightOnlyConfig&) {}
void check(const Float8DynamicActivationFloat8WeightConfig&) {}
void check(const Int8DynamicActivationInt8WeightConfig& config) {
  one_of("Int8DynamicActivationInt8WeightConfig", "weight_bits", config.weight_bits, std::array{7, 8});
}
void check(const Int4WeightOnlyConfig& config) {
  one_of("Int4WeightOnlyConfig", "group_size", config.group_size, std::array{32, 64, 128, 256});
}
void check(const IntxWeightOnlyConfig& config) {
  one_of("IntxWeightOnlyConfig", "bits", config.bits, std::array{2, 3, 4, 5, 6, 7, 8});
  one_of("IntxWeightOnlyConfig", "group_size", config.group_size, std::array{0, 32, 64, 128, 256});
}

template <typename Config>
BuiltinFields builtin(std::vector<std::string> later = {}) {
  return {type_of<Config>(), fields_of(Config{}),
          [](std::string_view fields) { check(config_of<Config>(fields)); }, std::move(later)};
}

}  // namespace

template <>
const char* type_of<Int8WeightOnlyConfig>() {
  return "Int8WeightOnlyConfig";
}
template <>
std::string fields_of(const Int8WeightOnlyConfig&) {
  return "{}";
}
template <>
Int8WeightOnlyConfig config_of(std::string_view) {
  return {};
}

template <>
const char* type_of<Int8DynamicActivationInt8WeightConfig>() {
  return "Int8DynamicActivationInt8WeightConfig";
}
template <>
std::string fields_of(const Int8DynamicActivationInt8WeightConfig& config) {
  return Json{{"symmetric_activations", config.symmetric_activations}, {"weight_bits", config.weight_bits}}
      .dump();
}
template <>
Int8DynamicActivationInt8WeightConfig config_of(std::string_view text) {
  const Json fields = Json::parse(text);
  return {.symmetric_activations = fields.at("symmetric_activations").get<bool>(),
          .weight_bits = int_of(fields, "weight_bits")};
}

template <>
const char* type_of<Int4WeightOnlyConfig>() {
  return "Int4WeightOnlyConfig";
}
template <>
std::string fields_of(const Int4WeightOnlyConfig& config) {
  return Json{{"group_size", config.group_size},
              {"symmetric", config.symmetric},
              {"activations", name_of(config.activations, kInt4Activations)},
              {"rounding", name_of(config.rounding, kInt4Roundings)}}
      .dump();
}
template <>
Int4WeightOnlyConfig config_of(std::string_view text) {
  const Json fields = Json::parse(text);
  return {.group_size = int_of(fields, "group_size"),
          .symmetric = fields.at("symmetric").get<bool>(),
          .activations = value_of(fields, "activations", kInt4Activations),
          .rounding = fields.contains("rounding") ? value_of(fields, "rounding", kInt4Roundings)
                                                  : Int4Rounding::kNearest};
}

template <>
const char* type_of<Float8WeightOnlyConfig>() {
  return "Float8WeightOnlyConfig";
}
template <>
std::string fields_of(const Float8WeightOnlyConfig& config) {
  return Json{{"granularity", name_of(config.granularity, kGranularities)}}.dump();
}
template <>
Float8WeightOnlyConfig config_of(std::string_view text) {
  return {.granularity = value_of(Json::parse(text), "granularity", kGranularities)};
}

template <>
const char* type_of<Float8DynamicActivationFloat8WeightConfig>() {
  return "Float8DynamicActivationFloat8WeightConfig";
}
template <>
std::string fields_of(const Float8DynamicActivationFloat8WeightConfig& config) {
  return Json{{"granularity", name_of(config.granularity, kGranularities)}}.dump();
}
template <>
Float8DynamicActivationFloat8WeightConfig config_of(std::string_view text) {
  return {.granularity = value_of(Json::parse(text), "granularity", kGranularities)};
}

template <>
const char* type_of<IntxWeightOnlyConfig>() {
  return "IntxWeightOnlyConfig";
}
template <>
std::string fields_of(const IntxWeightOnlyConfig& config) {
  return Json{{"bits", config.bits}, {"group_size", config.group_size}, {"symmetric", config.symmetric}}
      .dump();
}
template <>
IntxWeightOnlyConfig config_of(std::string_view text) {
  const Json fields = Json::parse(text);
  return {.bits = int_of(fields, "bits"),
          .group_size = int_of(fields, "group_size"),
          .symmetric = fields.at("symmetric").get<bool>()};
}

template <>
const char* type_of<Bf16WeightOnlyConfig>() {
  return "Bf16WeightOnlyConfig";
}
template <>
std::string fields_of(const Bf16WeightOnlyConfig&) {
  return "{}";
}
template <>
Bf16WeightOnlyConfig config_of(std::string_view) {
  return {};
}

template <>
const char* type_of<NoQuantConfig>() {
  return "NoQuantConfig";
}
template <>
std::string fields_of(const NoQuantConfig&) {
  return "{}";
}
template <>
NoQuantConfig config_of(std::string_view) {
  return {};
}

std::vector<BuiltinFields> builtin_fields() {
  return {builtin<Int8WeightOnlyConfig>(),
          builtin<Int8DynamicActivationInt8WeightConfig>(),
          builtin<Int4WeightOnlyConfig>({"rounding"}),
          builtin<Float8WeightOnlyConfig>(),
          builtin<Float8DynamicActivationFloat8WeightConfig>(),
          builtin<IntxWeightOnlyConfig>(),
          builtin<Bf16WeightOnlyConfig>(),
          builtin<NoQuantConfig>()};
}

}  // namespace halftone
