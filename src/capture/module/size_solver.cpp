// Finds the expression behind a number that differs between traces at several sizes. C++ code sees plain
// integers, so how a size was computed is not recorded; it has to be inferred. The forms are tried from the
// simplest on, and the sizes of the traces have no common factors if their ranges allow it
// (dynamic_sizes.cpp), so that a wrong form is unlikely to fit all traces. More traces are made when
// quotients are allowed, because those fit by chance more easily.
#include "capture/module/size_solver.h"

#include <algorithm>
#include <set>

namespace halftone {
namespace {

using Op = SymExpr::Op;

SymExpr plus(const SymExpr& x, int64_t offset) {
  return offset == 0 ? x : SymExpr::make(Op::kAdd, {x, offset});
}

SymExpr times(int64_t factor, const SymExpr& x) {
  return factor == 1 ? x : SymExpr::make(Op::kMul, {factor, x});
}

/// a and b with values = a * x + b.
std::optional<SymExpr> linear(const Samples& values, const Samples& x, const SymExpr& expression) {
  size_t other = 1;
  while (other < x.size() && x[other] == x[0]) ++other;
  if (other == x.size()) return std::nullopt;
  const int64_t run = x[other] - x[0], rise = values[other] - values[0];
  if (rise % run != 0) return std::nullopt;
  const int64_t factor = rise / run, offset = values[0] - factor * x[0];
  if (factor == 0) return std::nullopt;
  for (size_t i = 0; i < x.size(); ++i) {
    if (values[i] != factor * x[i] + offset) return std::nullopt;
  }
  return plus(times(factor, expression), offset);
}

/// c with values = c * x.
std::optional<int64_t> factor_of(const Samples& values, const Samples& x) {
  if (x[0] == 0 || values[0] % x[0] != 0) return std::nullopt;
  const int64_t factor = values[0] / x[0];
  for (size_t i = 0; i < x.size(); ++i) {
    if (values[i] != factor * x[i]) return std::nullopt;
  }
  return factor == 0 ? std::nullopt : std::optional(factor);
}

/// b with values = x + b.
std::optional<int64_t> offset_of(const Samples& values, const Samples& x) {
  const int64_t offset = values[0] - x[0];
  for (size_t i = 0; i < x.size(); ++i) {
    if (values[i] != x[i] + offset) return std::nullopt;
  }
  return offset;
}

/// values = (x + b) // d: each sample leaves an interval for b. If several are left, only the plain forms
/// (rounding down, rounding up) are accepted.
std::optional<SymExpr> quotient(const Samples& values, const Samples& x, const SymExpr& expression) {
  constexpr int64_t kMaxDivisor = 64;
  std::optional<SymExpr> found;
  for (int64_t divisor = 2; divisor <= kMaxDivisor; ++divisor) {
    int64_t low = std::numeric_limits<int64_t>::min(), high = std::numeric_limits<int64_t>::max();
    for (size_t i = 0; i < x.size(); ++i) {
      low = std::max(low, divisor * values[i] - x[i]);
      high = std::min(high, divisor * values[i] - x[i] + divisor - 1);
    }
    if (low > high) continue;
    const auto fits = [&](int64_t offset) { return low <= offset && offset <= high; };
    const int64_t offset = low == high ? low : fits(0) ? 0 : divisor - 1;
    // Two divisors that both fit are no evidence for either: rather an error than a guess.
    if (!fits(offset) || found) return std::nullopt;
    found = SymExpr::make(Op::kFloorDiv, {plus(expression, offset), divisor});
  }
  return found;
}

Samples product(const Samples& a, const Samples& b) {
  Samples result;
  for (size_t i = 0; i < a.size(); ++i) result.push_back(a[i] * b[i]);
  return result;
}

}  // namespace

SizeSolver::SizeSolver(const std::vector<SymbolBindings>& traces, bool quotients)
    : traces_(traces), quotients_(quotients) {
  for (const auto& [name, value] : traces.at(0)) {
    const SymExpr symbol = SymExpr::symbol(name);
    symbols_.push_back({symbol, evaluate(symbol)});
    known_.emplace(symbols_.back().values, symbol);
  }
}

Samples SizeSolver::evaluate(const SymExpr& expression) const {
  Samples values;
  for (const SymbolBindings& bindings : traces_) values.push_back(expression.evaluate(bindings));
  return values;
}

std::optional<SymExpr> SizeSolver::solve(const Samples& values, const std::vector<SymExpr>& at_hand) {
  if (std::all_of(values.begin(), values.end(), [&](int64_t value) { return value == values[0]; }))
    return SymExpr(values[0]);
  if (const auto found = known_.find(values); found != known_.end()) return found->second;
  std::vector<Atom> atoms = symbols_;
  std::set<Samples> seen;
  for (const Atom& atom : atoms) seen.insert(atom.values);
  // Sizes of the operands: a number is most likely computed from those, and without them expressions such
  // as (s0 // 2) * 3 would need a deeper search.
  for (const SymExpr& expression : at_hand) {
    if (expression.is_constant()) continue;
    Samples samples = evaluate(expression);
    if (seen.insert(samples).second) atoms.push_back({expression, std::move(samples)});
  }
  auto result = search(values, atoms);
  if (result) known_.emplace(values, *result);
  return result;
}

std::optional<SymExpr> SizeSolver::search(const Samples& values, const std::vector<Atom>& atoms) const {
  for (const Atom& x : atoms) {
    if (auto found = linear(values, x.values, x.expression)) return found;
  }
  for (size_t i = 0; i < atoms.size(); ++i) {
    for (size_t k = i; k < atoms.size(); ++k) {
      const Samples two = product(atoms[i].values, atoms[k].values);
      const SymExpr expression = SymExpr::make(Op::kMul, {atoms[i].expression, atoms[k].expression});
      if (const auto factor = factor_of(values, two)) return times(*factor, expression);
      for (size_t m = k; m < atoms.size(); ++m) {
        const auto factor = factor_of(values, product(two, atoms[m].values));
        if (factor) return times(*factor, SymExpr::make(Op::kMul, {expression, atoms[m].expression}));
      }
    }
  }
  for (const Atom& x : atoms) {
    for (const Atom& y : atoms) {
      Samples sum = x.values, difference = x.values;
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += y.values[i], difference[i] -= y.values[i];
      if (const auto offset = offset_of(values, sum))
        return plus(SymExpr::make(Op::kAdd, {x.expression, y.expression}), *offset);
      if (const auto offset = offset_of(values, difference))
        return plus(SymExpr::make(Op::kAdd, {x.expression, times(-1, y.expression)}), *offset);
    }
  }
  if (!quotients_) return std::nullopt;
  for (const Atom& x : atoms) {
    if (auto found = quotient(values, x.values, x.expression)) return found;
  }
  return std::nullopt;
}

}  // namespace halftone
