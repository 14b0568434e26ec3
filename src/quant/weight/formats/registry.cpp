// The WeightFormat of each config: the built-in ones, and those of registered types.
#include <map>
#include <mutex>

#include "base/errors.h"
#include "quant/config/config_types.h"
#include "quant/weight/formats/formats.h"

namespace halftone {
namespace {

using MakeFormat = std::function<std::shared_ptr<const WeightFormat>(const QuantConfig&)>;

struct Registry {
  std::mutex mutex;
  std::map<std::string, MakeFormat, std::less<>> makers;
};

Registry& registry() {
  static Registry the_registry;
  return the_registry;
}

template <typename Config>
bool try_builtin(const QuantConfig& config, std::shared_ptr<const WeightFormat>& format) {
  const std::optional<Config> fields = config.as<Config>();
  if (fields.has_value()) format = make_format(*fields);
  return fields.has_value();
}

template <typename... Configs>
std::shared_ptr<const WeightFormat> builtin_format(const QuantConfig& config) {
  std::shared_ptr<const WeightFormat> format;
  (try_builtin<Configs>(config, format) || ...);
  return format;
}

std::shared_ptr<const WeightFormat> any_builtin_format(const QuantConfig& config) {
  return builtin_format<Int8WeightOnlyConfig, Int8DynamicActivationInt8WeightConfig, Int4WeightOnlyConfig,
                        Float8WeightOnlyConfig, Float8DynamicActivationFloat8WeightConfig,
                        IntxWeightOnlyConfig, Bf16WeightOnlyConfig>(config);
}

MakeFormat registered_maker(const std::string& type) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.makers.find(type);
  return found != all.makers.end() ? found->second : nullptr;
}

}  // namespace

void register_config_type(ConfigType type) {
  if (!type.make_format)
    fail(ErrorCode::kInvalidArgument, "config type \"{}\" has no make_format", type.type);
  register_fields(type.type, type.default_fields, std::move(type.check));
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.makers[type.type] = std::move(type.make_format);
}

std::shared_ptr<const WeightFormat> format_of(const QuantConfig& config) {
  if (config.is_noquant()) {
    fail(ErrorCode::kUnsupported, "{} leaves weights alone: it has no weight format", config.describe());
  }
  if (auto format = any_builtin_format(config)) return format;
  if (const MakeFormat make = registered_maker(config.type())) {
    auto format = make(config);
    if (format == nullptr)
      fail(ErrorCode::kInvalidArgument, "{}: its make_format gave nothing", config.describe());
    return format;
  }
  fail(ErrorCode::kUnsupported, "{}: this type has no weight format", config.describe());
}

}  // namespace halftone
