// JSON as values of templates: extra variables, and the conversations of tests.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "text/template/rendering.h"

namespace halftone::jinja {

/// Members of objects keep their order, which tojson shows. kUnsupported for integers beyond 64 bits.
Value json_value(Rendering& rendering, const nlohmann::ordered_json& json);

}  // namespace halftone::jinja
