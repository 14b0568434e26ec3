// The schemes of base/scheme_table.h as public types.
#include <nlohmann/json.hpp>

#include "base/scheme_table.h"
#include "halftone/quant/config.h"

namespace halftone {

namespace {

QuantConfig config_of_scheme(const NamedScheme& scheme) {
  nlohmann::json fields = nlohmann::json::parse(scheme.entry->fields);
  if (scheme.group_size > 0) fields["group_size"] = scheme.group_size;
  return QuantConfig::of_type(scheme.entry->config, fields.dump());
}

std::vector<std::string> names_of_scheme(const SchemeEntry& entry) {
  std::vector<std::string> names;
  for (const std::string_view name : entry.names)
    if (!name.empty()) names.emplace_back(name);
  return names;
}

}  // namespace

const std::vector<Scheme>& schemes() {
  static const std::vector<Scheme> table = [] {
    std::vector<Scheme> list;
    for (const SchemeEntry& entry : scheme_table()) {
      if (entry.kind != SchemeKind::kConfig) continue;
      list.push_back({names_of_scheme(entry), config_of_scheme({&entry, 0}), std::string(entry.weights),
                      std::string(entry.activations), entry.bits_per_weight});
    }
    return list;
  }();
  return table;
}

const std::vector<SchemeWithoutConfig>& schemes_without_config() {
  static const std::vector<SchemeWithoutConfig> table = [] {
    std::vector<SchemeWithoutConfig> list;
    for (const SchemeEntry& entry : scheme_table()) {
      const bool needs_data = entry.kind == SchemeKind::kCalibrated;
      if (!needs_data && entry.kind != SchemeKind::kMeasured) continue;
      list.push_back({std::string(entry.names[0]), needs_data, std::string(entry.weights),
                      std::string(entry.activations), needs_data ? entry.bits_per_weight : 0,
                      std::string(entry.instead)});
    }
    return list;
  }();
  return table;
}

std::string scheme_name(const QuantConfig& config) {
  for (const Scheme& scheme : schemes()) {
    if (scheme.config == config) return scheme.names.front();
  }
  return config.describe();
}

QuantConfig::QuantConfig(std::string_view scheme) : QuantConfig(config_of_scheme(named_config(scheme))) {}

}  // namespace halftone
