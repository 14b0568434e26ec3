// Sizes that are known only at run time: integer expressions over named symbols, and the ranges of the
// symbols.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "halftone/base/api.h"
#include "halftone/base/error.h"

namespace halftone {

/// Symbol name → value.
using SymbolBindings = std::map<std::string, int64_t, std::less<>>;

/// Closed range of the values a symbol may take.
struct HALFTONE_API SymbolRange {
  int64_t min = 0;
  int64_t max = std::numeric_limits<int64_t>::max();
  bool operator==(const SymbolRange&) const = default;
};

/// Immutable integer expression; booleans are 0 and 1. Cheap to copy (a number, or a shared pointer),
/// thread-safe.
/// Division and remainder round towards minus infinity, as Python's // and % do.
class HALFTONE_API SymExpr {
 public:
  enum class Op {
    kConstant,
    kSymbol,
    kAdd,
    kMul,
    kFloorDiv,
    kMod,
    kPow,
    kMax,
    kMin,  // kAdd, kMul, kMax, kMin, kAnd, kOr take two or more operands
    kEq,
    kNe,
    kLt,
    kLe,
    kGt,
    kGe,
    kAnd,
    kOr,
    kNot,
    kIf,  // if(condition, then, else)
  };

  // NOLINTNEXTLINE(google-explicit-constructor): a size is an expression
  SymExpr(int64_t value = 0) : value_(value) {}
  static SymExpr symbol(std::string name);
  /// Checks the number of operands (kInvalidArgument) and folds constants; an overflow while folding is an
  /// error.
  static SymExpr make(Op op, std::vector<SymExpr> operands);
  /// Parses the text form: integers, symbols, + - * // % **, comparisons, and or not, max(…), min(…), if(…),
  /// parentheses.
  static SymExpr parse(std::string_view text);

  Op op() const;
  const std::vector<SymExpr>& operands() const;
  bool is_constant() const { return tree_ == nullptr; }
  bool is_symbol() const { return op() == Op::kSymbol; }
  int64_t constant() const { return value_; }  ///< only where is_constant()
  const std::string& symbol() const;           ///< only where is_symbol()
  std::optional<int64_t> as_constant() const { return is_constant() ? std::optional(value_) : std::nullopt; }

  /// The value under `bindings`. kGuard: a symbol is not bound; kInvalidArgument: overflow, division by zero.
  int64_t evaluate(const SymbolBindings& bindings) const;
  void collect_symbols(std::set<std::string>& names) const;
  /// The text form, which parse() takes back to an equal expression: "2*s0 + 1".
  std::string to_string() const;

  /// Same structure (2*s0 and s0*2 are different).
  friend bool operator==(const SymExpr& a, const SymExpr& b);

 private:
  struct Tree;
  explicit SymExpr(std::shared_ptr<const Tree> tree) : tree_(std::move(tree)) {}
  int depth() const;
  size_t size() const;
  std::shared_ptr<const Tree>
      tree_;           ///< nullptr: a constant. Graphs hold many; they need no memory of theirs
  int64_t value_ = 0;  ///< of constants
};

/// Finds `symbol` so that expression == value, for expressions that are linear in exactly one unbound symbol
/// (a*s + b, with other symbols bound); nothing if there is no integer solution or the form is another.
HALFTONE_API std::optional<std::pair<std::string, int64_t>> try_solve(const SymExpr& expression,
                                                                      int64_t value,
                                                                      const SymbolBindings& bindings);

}  // namespace halftone
