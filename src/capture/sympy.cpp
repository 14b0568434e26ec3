#include "capture/sympy.h"

#include <array>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

namespace halftone {
namespace {

using Op = SymExpr::Op;

constexpr int kMaxDepth = 64;
constexpr size_t kMaxText = 16384;  // longer ones are nothing that a person or a guard can use

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// sympy's functions that are an operation of SymExpr as they stand.
constexpr std::array kDirect = {
    std::pair{std::string_view("Add"), Op::kAdd},
    std::pair{std::string_view("Mul"), Op::kMul},
    std::pair{std::string_view("Pow"), Op::kPow},
    std::pair{std::string_view("PowByNatural"), Op::kPow},
    std::pair{std::string_view("FloorDiv"), Op::kFloorDiv},
    std::pair{std::string_view("CleanDiv"), Op::kFloorDiv},
    std::pair{std::string_view("Mod"), Op::kMod},
    std::pair{std::string_view("PythonMod"), Op::kMod},
    std::pair{std::string_view("Max"), Op::kMax},
    std::pair{std::string_view("Min"), Op::kMin},
    std::pair{std::string_view("Equality"), Op::kEq},
    std::pair{std::string_view("Unequality"), Op::kNe},
    std::pair{std::string_view("StrictLessThan"), Op::kLt},
    std::pair{std::string_view("LessThan"), Op::kLe},
    std::pair{std::string_view("StrictGreaterThan"), Op::kGt},
    std::pair{std::string_view("GreaterThan"), Op::kGe},
    std::pair{std::string_view("And"), Op::kAnd},
    std::pair{std::string_view("Or"), Op::kOr},
    std::pair{std::string_view("Not"), Op::kNot},
    std::pair{std::string_view("Where"), Op::kIf},
};

/// Recursive descent. Every method returns nothing at the first unknown construct; its place is not reported.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::optional<SymExpr> parse() {
    auto result = expression(0);
    skip_space();
    if (!result || position_ != text_.size()) return std::nullopt;
    return result;
  }

 private:
  void skip_space() {
    while (position_ < text_.size() && text_[position_] == ' ') ++position_;
  }

  bool take(char c) {
    skip_space();
    if (position_ >= text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }

  std::string_view name() {
    skip_space();
    const size_t begin = position_;
    while (position_ < text_.size() && (is_letter(text_[position_]) || is_digit(text_[position_])))
      ++position_;
    return text_.substr(begin, position_ - begin);
  }

  std::optional<int64_t> integer() {
    skip_space();
    int64_t value = 0;
    const char* begin = text_.data() + position_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc{}) return std::nullopt;
    position_ += static_cast<size_t>(end - begin);
    return value;
  }

  /// Symbol('s0', positive=True, integer=True): the assumptions say nothing that ranges do not say better.
  std::optional<SymExpr> symbol() {
    if (!take('\'')) return std::nullopt;
    const size_t end = text_.find('\'', position_);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view name = text_.substr(position_, end - position_);
    position_ = end + 1;
    if (!is_python_name(name)) return std::nullopt;
    const size_t close = text_.find(')', position_);
    if (close == std::string_view::npos) return std::nullopt;
    position_ = close + 1;
    return SymExpr::symbol(std::string(name));
  }

  std::optional<SymExpr> expression(int depth) {
    if (depth > kMaxDepth) return std::nullopt;
    const std::string_view function = name();
    if (function == "true" || function == "BooleanTrue") return SymExpr(1);
    if (function == "false" || function == "BooleanFalse") return SymExpr(0);
    if (!take('(')) return std::nullopt;
    if (function == "Symbol" || function == "Dummy") return symbol();
    if (function == "Integer") {
      const auto value = integer();
      if (!value || !take(')')) return std::nullopt;
      return SymExpr(*value);
    }
    if (function == "Piecewise") return piecewise(depth + 1);
    auto operands = arguments(depth + 1);
    if (!operands) return std::nullopt;
    return combine(function, std::move(*operands));
  }

  /// The arguments up to and with the closing parenthesis; "evaluate=False" and its like are skipped.
  std::optional<std::vector<SymExpr>> arguments(int depth) {
    std::vector<SymExpr> result;
    if (take(')')) return result;
    do {
      const size_t begin = position_;
      if (!name().empty() && take('=')) {
        name();
        continue;
      }
      position_ = begin;
      auto operand = expression(depth);
      if (!operand) return std::nullopt;
      result.push_back(std::move(*operand));
    } while (take(','));
    if (!take(')')) return std::nullopt;
    return result;
  }

  /// Piecewise(ExprCondPair(value, condition), …, ExprCondPair(value, true)) as nested ifs.
  std::optional<SymExpr> piecewise(int depth) {
    std::vector<std::pair<SymExpr, SymExpr>> cases;
    do {
      const std::string_view pair = name();
      if ((pair != "ExprCondPair" && pair != "Tuple") || !take('(')) return std::nullopt;
      auto both = arguments(depth);
      if (!both || both->size() != 2) return std::nullopt;
      cases.emplace_back((*both)[0], (*both)[1]);
    } while (take(','));
    if (!take(')') || cases.back().second.as_constant() != 1) return std::nullopt;
    SymExpr result = cases.back().first;
    for (size_t i = cases.size() - 1; i-- > 0;) {
      result = SymExpr::make(Op::kIf, {cases[i].second, cases[i].first, result});
    }
    return result;
  }

  static std::optional<SymExpr> combine(std::string_view function, std::vector<SymExpr> operands) {
    for (const auto& [name, op] : kDirect) {
      if (name != function) continue;
      if (op == Op::kPow && operands.size() == 2 && operands[1].as_constant().value_or(0) < 0)
        return std::nullopt;
      if ((op == Op::kAdd || op == Op::kMul || op == Op::kMax || op == Op::kMin || op == Op::kAnd ||
           op == Op::kOr) &&
          operands.size() == 1) {
        return operands[0];
      }
      return SymExpr::make(op, std::move(operands));
    }
    if (operands.size() == 1 &&
        (function == "Identity" || function == "FloorToInt" || function == "TruncToInt" ||
         function == "CeilToInt" || function == "RoundToInt" || function == "ToFloat")) {
      return operands[0];  // the operand is an integer here, so rounding it and calling it a float change
                           // nothing
    }
    if (operands.size() == 2 && function == "CeilDiv") {
      const SymExpr negative = SymExpr::make(Op::kMul, {SymExpr(-1), operands[0]});
      return SymExpr::make(Op::kMul, {SymExpr(-1), SymExpr::make(Op::kFloorDiv, {negative, operands[1]})});
    }
    if (operands.size() == 3 && function == "ModularIndexing") {  // (base // divisor) % modulus
      return SymExpr::make(Op::kMod, {SymExpr::make(Op::kFloorDiv, {operands[0], operands[1]}), operands[2]});
    }
    if (operands.size() == 2 && (function == "LShift" || function == "RShift")) {
      const SymExpr power = SymExpr::make(Op::kPow, {SymExpr(2), operands[1]});
      return SymExpr::make(function == "LShift" ? Op::kMul : Op::kFloorDiv, {operands[0], power});
    }
    return std::nullopt;
  }

  std::string_view text_;
  size_t position_ = 0;
};

}  // namespace

bool is_python_name(std::string_view name) {
  if (name.empty() || name.size() > 1024 || !is_letter(name[0])) return false;
  for (const char c : name) {
    if (!is_letter(c) && !is_digit(c)) return false;
  }
  return true;
}

std::optional<SymExpr> try_parse_sympy(std::string_view text) {
  if (text.size() > kMaxText) return std::nullopt;
  try {
    return Parser(text).parse();
  } catch (const Error&) {
    return std::nullopt;  // overflow or a wrong number of operands while folding
  }
}

}  // namespace halftone
