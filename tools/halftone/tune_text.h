// What tune says at the end: what the decision gains, and the schemes of parts.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "halftone/tune_modules.h"

namespace halftone::cli {

/// Of the chosen one: how much faster than eager and than fp32, how near to eager, how large. What it is and
/// why stands in the report.
std::string gain_text(const TuneReport& report);

/// A table of parts and their schemes; a sentence where there are none.
std::string parts_text(const LayerwiseConfig& parts);
nlohmann::ordered_json parts_json(const LayerwiseConfig& parts);

}  // namespace halftone::cli
