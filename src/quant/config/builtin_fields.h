// The fields of the built-in config types, between their structs and JSON.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "halftone/quant/config.h"

namespace halftone {

struct BuiltinFields {
  std::string type;
  std::string defaults;  ///< canonical JSON
  std::function<void(std::string_view fields_json)> check;
  /// Fields that came after files of this type were written: left out of the canonical JSON if they have
  /// their default, so that the keys and the files of before stay as they are.
  std::vector<std::string> later = {};
};
std::vector<BuiltinFields> builtin_fields();

/// Both directions; the JSON holds all fields (on the way in not those of `later` that have their default),
/// canonical on the way out.
template <typename Config>
std::string fields_of(const Config& config);
template <typename Config>
Config config_of(std::string_view fields_json);
template <typename Config>
const char* type_of();

}  // namespace halftone
