// The parts of a backend config as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "halftone/ptq/backend_config.h"

namespace halftone::backend_config {

using Json = nlohmann::ordered_json;

/// Refuses keys that are not among these, with the nearest.
void expect_keys(const JsonCursor& place, const std::vector<std::string>& known);

Json dtype_json(const DTypeConfig& config);
DTypeConfig read_dtype(const JsonCursor& place);

Json pattern_json(const Pattern& pattern);
Json complex_pattern_json(const Pattern& pattern);
std::vector<PatternNode> read_pattern(const JsonCursor& place);
std::vector<PatternNode> read_complex_pattern(const JsonCursor& place);

Json observation_json(ObservationType type);
ObservationType read_observation(const JsonCursor& place);

Json pattern_config_json(const BackendPatternConfig& config);
BackendPatternConfig read_pattern_config(const JsonCursor& place);

}  // namespace halftone::backend_config
