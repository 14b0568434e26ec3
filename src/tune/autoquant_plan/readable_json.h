// Readable JSON: values that fit a line are written on one.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace halftone {

/// Lists and objects without further ones inside are written on one line where that is at most 140 columns
/// wide, everything else with a line for each member. Strings must be UTF-8.
std::string readable_json(const nlohmann::ordered_json& json);

}  // namespace halftone
