// Solves an expression for its one unknown symbol, as a call needs to bind symbols from the sizes of its
// inputs. Only forms that are linear in the unknown are solved: they have at most one answer, so a size of
// an input says exactly which call it is. Everything else is left to guards, which compare after binding.
#include "base/checked.h"
#include "halftone/graph/symbolic.h"

namespace halftone {
namespace {

// slope * unknown + offset
struct Line {
  int64_t slope = 0;
  int64_t offset = 0;
};

std::optional<int64_t> try_evaluate(const SymExpr& expression, const SymbolBindings& bindings) {
  try {
    return expression.evaluate(bindings);
  } catch (const Error&) {
    return std::nullopt;  // not bound, overflow or division by zero: no solution can be named
  }
}

std::optional<Line> add(const Line& a, const Line& b) {
  const auto slope = checked_add(a.slope, b.slope);
  const auto offset = checked_add(a.offset, b.offset);
  if (!slope || !offset) return std::nullopt;
  return Line{*slope, *offset};
}

std::optional<Line> multiply(Line a, Line b) {
  if (a.slope != 0) std::swap(a, b);
  if (a.slope != 0) return std::nullopt;  // quadratic
  const auto slope = checked_mul(a.offset, b.slope);
  const auto offset = checked_mul(a.offset, b.offset);
  if (!slope || !offset) return std::nullopt;
  return Line{*slope, *offset};
}

// floor((k*a*s + b) / k) is a*s + floor(b / k) for every s, so an exact divisor of the slope keeps the form
// linear.
std::optional<Line> floor_divide(const Line& a, const Line& b) {
  // By -1: a division of the smallest integer would trap; multiply checks for it.
  if (b.slope == 0 && b.offset == -1) return multiply(a, b);
  if (b.slope != 0 || b.offset == 0 || a.slope % b.offset != 0) return std::nullopt;
  return Line{a.slope / b.offset, SymExpr::make(SymExpr::Op::kFloorDiv, {a.offset, b.offset}).constant()};
}

std::optional<Line> as_line(const SymExpr& expression, const std::string& unknown,
                            const SymbolBindings& bindings) {
  if (expression.is_symbol() && expression.symbol() == unknown) return Line{1, 0};
  const auto& operands = expression.operands();
  const SymExpr::Op op = expression.op();
  if (op != SymExpr::Op::kAdd && op != SymExpr::Op::kMul && op != SymExpr::Op::kFloorDiv) {
    const auto value = try_evaluate(expression, bindings);
    return value ? std::optional(Line{0, *value}) : std::nullopt;
  }
  std::optional<Line> result = as_line(operands.front(), unknown, bindings);
  for (size_t i = 1; i < operands.size() && result; ++i) {
    const std::optional<Line> next = as_line(operands[i], unknown, bindings);
    if (!next) return std::nullopt;
    result = op == SymExpr::Op::kAdd   ? add(*result, *next)
             : op == SymExpr::Op::kMul ? multiply(*result, *next)
                                       : floor_divide(*result, *next);
  }
  return result;
}

}  // namespace

std::optional<std::pair<std::string, int64_t>> try_solve(const SymExpr& expression, int64_t value,
                                                         const SymbolBindings& bindings) {
  std::set<std::string> symbols;
  expression.collect_symbols(symbols);
  std::erase_if(symbols, [&](const std::string& name) { return bindings.contains(name); });
  if (symbols.size() != 1) return std::nullopt;
  const std::string& unknown = *symbols.begin();
  const std::optional<Line> line = as_line(expression, unknown, bindings);
  if (!line || line->slope == 0) return std::nullopt;
  const auto rest = checked_sub(value, line->offset);
  if (!rest) return std::nullopt;
  // Apart, because the smallest integer % -1 traps.
  if (line->slope == -1) {
    const auto negated = checked_sub(int64_t{0}, *rest);
    if (!negated) return std::nullopt;
    return std::pair(unknown, *negated);
  }
  if (*rest % line->slope != 0) return std::nullopt;
  return std::pair(unknown, *rest / line->slope);
}

}  // namespace halftone
