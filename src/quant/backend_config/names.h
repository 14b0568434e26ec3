// The names that backend configs may hold.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "halftone/ptq/backend_config.h"

namespace halftone {

constexpr std::string_view kAnything = "*";

/// What is wrong with the name of an operation, or "": module types, functions and methods that are
/// registered, operators ("aten::linear": whether there is such a one is known where there is torch), and
/// kAnything.
std::string problem_with_operation(std::string_view name);
/// The same for a name of one kind.
std::string problem_with_name(ConfigNameKind kind, std::string_view name);

}  // namespace halftone
