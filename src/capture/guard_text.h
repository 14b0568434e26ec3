// Shape guards as torch.export writes them: Python comparisons over "L['x'].size()[0]".
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "halftone/graph/symbolic.h"

namespace halftone {

/// Gives the expression behind a reference: "L['x'].size()[0]", "L['batch'][1].size()[2]", "L['n']" or a bare
/// symbol "s0".
using GuardReference = std::function<std::optional<SymExpr>(std::string_view text)>;

/// Reads an integer expression in Python's syntax: or, and, not, comparisons, + - * // %, **, unary -,
/// max(…), min(…), parentheses, "a if c else b". Nothing if it holds more than that, or a reference that
/// `resolve` does not know.
std::optional<SymExpr> try_parse_guard(std::string_view text, const GuardReference& resolve);

}  // namespace halftone
