// Runs a parsed template.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "text/template/rendering.h"
#include "text/template/syntax.h"

namespace halftone::jinja {

/// The text that the template makes of these variables. They, and the template, must outlive the call; the values belong to
/// `rendering`.
std::string render(Rendering& rendering, const StatementList& statements,
                   const std::vector<std::pair<std::string, Value>>& variables);

}  // namespace halftone::jinja
