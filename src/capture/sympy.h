// Size expressions as torch.export writes them: the text of sympy's srepr, "Add(Symbol('s0', integer=True),
// Integer(1))".
#pragma once

#include <optional>
#include <string_view>

#include "halftone/graph/symbolic.h"

namespace halftone {

/// The expression, or nothing if the text is broken or holds what SymExpr cannot say (fractions, floats,
/// unknown functions, numbers beyond 64 bits, deep nesting). It is metadata: the code that needs it decides
/// what a missing one means.
std::optional<SymExpr> try_parse_sympy(std::string_view text);

/// Whether a value or a size may be called this: a letter or underscore, then letters, digits and
/// underscores. underscores.
bool is_python_name(std::string_view name);

}  // namespace halftone
