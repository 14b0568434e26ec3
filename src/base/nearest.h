// "Did you mean …?" for unknown names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "halftone/cli/names.h"

namespace halftone {

/// The known name with the smallest edit distance to `name`, or "" if none is near (more than a third of
/// the letters differ).
std::string nearest_name(std::string_view name, const std::vector<std::string>& known);

/// All known names, those with the smallest edit distance to `name` first.
std::vector<std::string> nearest_first(std::string_view name, std::vector<std::string> known);

}  // namespace halftone
