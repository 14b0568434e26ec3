// Finds the expression behind a number that differs from trace to trace.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "halftone/graph/symbolic.h"

namespace halftone {

/// One number for each trace.
using Samples = std::vector<int64_t>;

/// Tries, simplest first, over the symbols and the sizes that are at hand (x, y): a number; something found
/// before; a*x + b; c*x*y and c*x*y*z; x + y + b and x - y + b; (x + b) // d. Whatever is given back has the
/// right value in every trace; the forms have at most two free numbers, so that with three traces or more one
/// confirms.
class SizeSolver {
 public:
  explicit SizeSolver(const std::vector<SymbolBindings>& traces, bool quotients = false);

  std::optional<SymExpr> solve(const Samples& values, const std::vector<SymExpr>& at_hand = {});
  Samples evaluate(const SymExpr& expression) const;

 private:
  struct Atom {
    SymExpr expression;
    Samples values;
  };
  std::optional<SymExpr> search(const Samples& values, const std::vector<Atom>& atoms) const;
  const std::vector<SymbolBindings>& traces_;
  const bool quotients_;
  std::vector<Atom> symbols_;
  std::map<Samples, SymExpr> known_;
};

}  // namespace halftone
