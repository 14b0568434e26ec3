#include "capture/guard_text.h"

#include <array>
#include <charconv>
#include <utility>
#include <vector>

namespace halftone {
namespace {

using Op = SymExpr::Op;
using Expr = std::optional<SymExpr>;

constexpr int kMaxDepth = 64;
constexpr size_t kMaxText = 16384;

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Python's grammar of expressions, from the loosest operator to the tightest, as far as guards use it.
class Parser {
 public:
  Parser(std::string_view text, const GuardReference& resolve) : text_(text), resolve_(resolve) {}

  Expr parse() {
    Expr result = conditional();
    skip_space();
    if (position_ != text_.size()) return std::nullopt;
    return result;
  }

 private:
  void skip_space() {
    while (position_ < text_.size() && text_[position_] == ' ') ++position_;
  }

  bool take(std::string_view token) {
    skip_space();
    if (!text_.substr(position_).starts_with(token)) return false;
    const size_t end = position_ + token.size();
    if (is_word(token.back()) && end < text_.size() && is_word(text_[end])) return false;
    position_ = end;
    return true;
  }

  static Expr make(Op op, Expr a, Expr b) {
    if (!a || !b) return std::nullopt;
    return SymExpr::make(op, {std::move(*a), std::move(*b)});
  }
  static Expr negate(Expr a) { return make(Op::kMul, SymExpr(-1), std::move(a)); }

  Expr conditional() {
    if (++depth_ > kMaxDepth) return std::nullopt;
    Expr value = disjunction();
    if (value && take("if")) {
      Expr condition = disjunction();
      if (!condition || !take("else")) return std::nullopt;
      Expr otherwise = conditional();
      if (!otherwise) return std::nullopt;
      value = SymExpr::make(Op::kIf, {*condition, *value, *otherwise});
    }
    --depth_;
    return value;
  }

  Expr disjunction() {
    Expr left = conjunction();
    while (left && take("or")) left = make(Op::kOr, std::move(left), conjunction());
    return left;
  }

  Expr conjunction() {
    Expr left = negation();
    while (left && take("and")) left = make(Op::kAnd, std::move(left), negation());
    return left;
  }

  Expr negation() {
    if (!take("not")) return comparison();
    if (++depth_ > kMaxDepth) return std::nullopt;
    Expr operand = negation();
    --depth_;
    if (!operand) return std::nullopt;
    return SymExpr::make(Op::kNot, {*operand});
  }

  std::optional<Op> comparison_operator() {
    static constexpr std::array kOperators = {
        std::pair{std::string_view("=="), Op::kEq}, std::pair{std::string_view("!="), Op::kNe},
        std::pair{std::string_view("<="), Op::kLe}, std::pair{std::string_view(">="), Op::kGe},
        std::pair{std::string_view("<"), Op::kLt},  std::pair{std::string_view(">"), Op::kGt}};
    for (const auto& [token, op] : kOperators) {
      if (take(token)) return op;
    }
    return std::nullopt;
  }

  /// a < b <= c means a < b and b <= c.
  Expr comparison() {
    Expr left = sum();
    Expr result;
    while (left) {
      const auto op = comparison_operator();
      if (!op) return result ? result : left;
      Expr right = sum();
      Expr link = make(*op, left, right);
      result = result ? make(Op::kAnd, std::move(result), std::move(link)) : std::move(link);
      if (!result) return std::nullopt;
      left = std::move(right);
    }
    return std::nullopt;
  }

  Expr sum() {
    Expr left = term();
    while (left) {
      if (take("+")) {
        left = make(Op::kAdd, std::move(left), term());
      } else if (take("-")) {
        left = make(Op::kAdd, std::move(left), negate(term()));
      } else {
        break;
      }
    }
    return left;
  }

  Expr term() {
    Expr left = unary();
    while (left) {
      if (take("//")) {
        left = make(Op::kFloorDiv, std::move(left), unary());
      } else if (take("/")) {
        return std::nullopt;  // true division gives a float
      } else if (take("*")) {
        left = make(Op::kMul, std::move(left), unary());
      } else if (take("%")) {
        left = make(Op::kMod, std::move(left), unary());
      } else {
        break;
      }
    }
    return left;
  }

  Expr unary() {
    if (!take("-")) return power();
    if (++depth_ > kMaxDepth) return std::nullopt;
    Expr operand = unary();
    --depth_;
    return negate(std::move(operand));
  }

  Expr power() {
    Expr base = primary();
    if (!base || !take("**")) return base;
    if (++depth_ > kMaxDepth) return std::nullopt;
    Expr exponent = unary();
    --depth_;
    return make(Op::kPow, std::move(base), std::move(exponent));
  }

  Expr primary() {
    skip_space();
    if (position_ >= text_.size()) return std::nullopt;
    if (take("(")) {
      Expr inner = conditional();
      if (!inner || !take(")")) return std::nullopt;
      return inner;
    }
    if (is_digit(text_[position_])) return integer();
    if (take("True")) return SymExpr(1);
    if (take("False")) return SymExpr(0);
    if (take("max")) return call(Op::kMax);
    if (take("min")) return call(Op::kMin);
    return reference();
  }

  Expr integer() {
    int64_t value = 0;
    const char* begin = text_.data() + position_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc{}) return std::nullopt;
    position_ += static_cast<size_t>(end - begin);
    if (position_ < text_.size() && (is_word(text_[position_]) || text_[position_] == '.'))
      return std::nullopt;
    return SymExpr(value);
  }

  Expr call(Op op) {
    if (!take("(")) return std::nullopt;
    std::vector<SymExpr> operands;
    do {
      Expr operand = conditional();
      if (!operand) return std::nullopt;
      operands.push_back(std::move(*operand));
    } while (take(","));
    if (!take(")")) return std::nullopt;
    return operands.size() == 1 ? operands[0] : SymExpr::make(op, std::move(operands));
  }

  /// A name with everything that hangs on it: subscripts, attributes, empty calls.
  Expr reference() {
    const size_t begin = position_;
    while (position_ < text_.size()) {
      const char c = text_[position_];
      if (is_word(c) || c == '.') {
        ++position_;
      } else if (c == '[') {
        if (!skip_subscript()) return std::nullopt;
      } else if (text_.substr(position_).starts_with("()")) {
        position_ += 2;
      } else {
        break;
      }
    }
    if (position_ == begin) return std::nullopt;
    return resolve_(text_.substr(begin, position_ - begin));
  }

  bool skip_subscript() {
    ++position_;
    if (position_ < text_.size() && (text_[position_] == '\'' || text_[position_] == '"')) {
      const size_t quote = text_.find(text_[position_], position_ + 1);
      if (quote == std::string_view::npos) return false;
      position_ = quote + 1;
    }
    while (position_ < text_.size() && is_word(text_[position_])) ++position_;
    if (position_ >= text_.size() || text_[position_] != ']') return false;
    ++position_;
    return true;
  }

  std::string_view text_;
  const GuardReference& resolve_;
  size_t position_ = 0;
  int depth_ = 0;
};

}  // namespace

std::optional<SymExpr> try_parse_guard(std::string_view text, const GuardReference& resolve) {
  if (text.size() > kMaxText) return std::nullopt;
  try {
    return Parser(text, resolve).parse();
  } catch (const Error&) {
    return std::nullopt;  // overflow while folding constants
  }
}

}  // namespace halftone
