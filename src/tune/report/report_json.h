// The parts of reports that reports, plans and the cache share as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/json.h"
#include "halftone/tune/report.h"

namespace halftone {

nlohmann::ordered_json shapes_json(const std::vector<SampleShape>& shapes);
nlohmann::ordered_json ranges_json(const std::vector<SampleRange>& ranges);
/// Bytes that are no UTF-8 (of an operator's message, say) are replaced, not refused.
std::string dump_json(const nlohmann::ordered_json& json, int indent = 2);

}  // namespace halftone
