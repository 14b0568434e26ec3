// Unstable: for the command line only, may change in any version.
// "Did you mean …?" for names that a user typed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "halftone/base/api.h"

namespace halftone {

/// " (did you mean \"x\"?)" with the known name that has the smallest edit distance; "" if none is near
/// (more than a third of the letters differ).
HALFTONE_API std::string did_you_mean(std::string_view name, const std::vector<std::string>& known);

}  // namespace halftone
