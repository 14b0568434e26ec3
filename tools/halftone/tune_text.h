// The final text of tune: the gain of its decision, and the schemes of parts.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "halftone/tune/modules.h"

namespace halftone::cli {

/// Of the chosen one: "least cosine 0.99556; 58.5 MB of weights instead of 90.3 MB". What it is, why, and how
/// much faster stands in the report's own text.
std::string gain_text(const TuneReport& report);

/// A table of parts and their schemes; a sentence if there are none.
std::string parts_text(const LayerwiseConfig& parts);
nlohmann::ordered_json parts_json(const LayerwiseConfig& parts);

}  // namespace halftone::cli
