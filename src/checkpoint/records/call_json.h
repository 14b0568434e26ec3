// The call of a model, as JSON: the nesting of arguments and results, ranges, guards.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/json.h"
#include "halftone/graph/graph_module.h"

namespace halftone::ht {

nlohmann::json call_json(const CallSpec& call);
CallSpec call_of(const JsonCursor& place);

nlohmann::json ranges_json(const std::map<std::string, SymbolRange>& ranges);
std::map<std::string, SymbolRange> ranges_of(const JsonCursor& place);

nlohmann::json guards_json(const std::vector<ShapeGuard>& guards);
std::vector<ShapeGuard> guards_of(const JsonCursor& place);

nlohmann::json texts_json(const std::vector<std::string>& texts);
std::vector<std::string> texts_of(const JsonCursor& place);

}  // namespace halftone::ht
