// The fields of the built-in config types, between their structs and JSON.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "halftone/quant_config.h"

namespace halftone {

struct BuiltinFields {
  std::string type;
  std::string defaults;  ///< canonical JSON
  std::function<void(std::string_view fields_json)> check;
};
std::vector<BuiltinFields> builtin_fields();

/// Both directions; the JSON holds all fields, canonical on the way out.
template <typename Config>
std::string fields_of(const Config& config);
template <typename Config>
Config config_of(std::string_view fields_json);
template <typename Config>
const char* type_of();

}  // namespace halftone
