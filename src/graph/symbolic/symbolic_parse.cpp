// Expressions of symbolic sizes from text, in the spellings of Python and of exported files.
#include <algorithm>
#include <array>
#include <charconv>

#include "base/errors.h"
#include "graph/symbolic/symbolic_text.h"

namespace halftone {
namespace {

using Op = SymExpr::Op;

// Parentheses, calls and prefix operators. Twice the depth of the deepest tree that SymExpr::make allows:
// to_string() writes at most one prefix and one parenthesis for each level, and everything it writes must be
// readable.
constexpr int kMaxNesting = 256;
constexpr uint64_t kTwoTo63 = uint64_t{1} << 63;

struct Function {
  std::string_view name;
  Op op;
};
constexpr std::array kFunctions = {
    Function{"max", Op::kMax},
    Function{"min", Op::kMin},
    Function{"if", Op::kIf},
    Function{"Max", Op::kMax},
    Function{"Min", Op::kMin},
    Function{"Mod", Op::kMod},
    Function{"PythonMod", Op::kMod},
    Function{"FloorDiv", Op::kFloorDiv},
    Function{"CleanDiv", Op::kFloorDiv},
    Function{"Eq", Op::kEq},
    Function{"Ne", Op::kNe},
    Function{"Lt", Op::kLt},
    Function{"Le", Op::kLe},
    Function{"Gt", Op::kGt},
    Function{"Ge", Op::kGe},
    Function{"And", Op::kAnd},
    Function{"Or", Op::kOr},
    Function{"Not", Op::kNot},
};
constexpr std::array kComparisons = {
    Function{"==", Op::kEq}, Function{"!=", Op::kNe}, Function{"<=", Op::kLe},
    Function{">=", Op::kGe}, Function{"<", Op::kLt},  Function{">", Op::kGt},
};

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Recursive descent, loosest operator first: or, and, not, comparison, + -, * // %, unary -, **, atom.
class SymbolicParser {
 public:
  SymbolicParser(std::string_view text, size_t position) : text_(text), position_(position) {}
  size_t position() const { return position_; }

  SymExpr parse_or() { return parse_chain(Op::kOr, "or", '|', &SymbolicParser::parse_and); }

 private:
  // Counts one level of nesting while it lives.
  class Nesting {
   public:
    explicit Nesting(SymbolicParser& parser) : parser_(parser) {
      if (++parser.nesting_ > kMaxNesting) parser.error(fmt::format("nested deeper than {}", kMaxNesting));
    }
    ~Nesting() { --parser_.nesting_; }

   private:
    SymbolicParser& parser_;
  };

  [[noreturn]] void error(const std::string& message) const { throw SymbolicSyntaxError(position_, message); }

  SymExpr make(Op op, std::vector<SymExpr> operands) const {
    if (operands.size() == 1 && op != Op::kNot) return operands.front();
    return checked([&] { return SymExpr::make(op, std::move(operands)); });
  }

  // An overflow or a wrong number of operands gets its place in the text.
  template <typename F>
  SymExpr checked(F&& build) const {
    try {
      return build();
    } catch (const Error& problem) {
      error(problem.what());
    }
  }

  void skip_space() {
    while (position_ < text_.size() &&
           std::string_view(" \t\r\n").find(text_[position_]) != std::string_view::npos) {
      ++position_;
    }
  }
  bool at(std::string_view token) {
    skip_space();
    return text_.substr(position_).starts_with(token);
  }
  bool accept(std::string_view token) {
    if (!at(token)) return false;
    position_ += token.size();
    return true;
  }
  std::string_view peek_word() {
    skip_space();
    size_t end = position_;
    if (end < text_.size() && is_letter(text_[end])) {
      while (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]))) ++end;
    }
    return text_.substr(position_, end - position_);
  }
  bool accept_word(std::string_view word) {
    if (peek_word() != word) return false;
    position_ += word.size();
    return true;
  }

  SymExpr parse_chain(Op op, std::string_view word, char sign, SymExpr (SymbolicParser::*operand)()) {
    std::vector<SymExpr> operands = {(this->*operand)()};
    while (accept_word(word) || accept(std::string_view(&sign, 1))) operands.push_back((this->*operand)());
    return make(op, std::move(operands));
  }
  SymExpr parse_and() { return parse_chain(Op::kAnd, "and", '&', &SymbolicParser::parse_not); }

  SymExpr parse_not() {
    if (!accept_word("not")) return parse_comparison();
    const Nesting nesting(*this);
    return make(Op::kNot, {parse_not()});
  }

  const Function* accept_comparison() {
    for (const Function& comparison : kComparisons) {
      if (accept(comparison.name)) return &comparison;
    }
    return nullptr;
  }

  SymExpr parse_comparison() {
    SymExpr left = parse_sum();
    const Function* comparison = accept_comparison();
    if (comparison == nullptr) return left;
    SymExpr right = parse_sum();
    if (accept_comparison() != nullptr) error("comparisons cannot be chained; write (a < b) and (b < c)");
    return make(comparison->op, {std::move(left), std::move(right)});
  }

  SymExpr parse_sum() {
    bool is_open_product = false;
    std::vector<SymExpr> terms = {parse_product(is_open_product)};
    while (true) {
      if (accept("+")) {
        terms.push_back(parse_product(is_open_product));
      } else if (accept("-")) {
        SymExpr term = parse_product(is_open_product);
        terms.push_back(negate(term, is_open_product));
      } else {
        return make(Op::kAdd, std::move(terms));
      }
    }
  }

  // a - 2*b is a + (-2)*b, where the product stands without parentheses; other terms are multiplied by -1.
  SymExpr negate(const SymExpr& term, bool is_open_product) {
    if (!term.is_constant() && is_open_product && term.operands().front().is_constant()) {
      std::vector<SymExpr> factors = term.operands();
      factors.front() = checked([&] { return SymExpr::make(Op::kMul, {-1, factors.front()}); });
      return make(Op::kMul, std::move(factors));
    }
    return make(Op::kMul, {-1, term});
  }

  SymExpr parse_product(bool& is_open_product) {
    std::vector<SymExpr> factors = {parse_unary()};
    while (true) {
      const bool divide = at("//");
      if (divide || at("%")) {
        position_ += divide ? 2 : 1;
        SymExpr left = make(Op::kMul, std::move(factors));
        SymExpr right = parse_unary();
        factors = {make(divide ? Op::kFloorDiv : Op::kMod, {std::move(left), std::move(right)})};
      } else if (!at("**") && accept("*")) {
        factors.push_back(parse_unary());
      } else {
        break;
      }
    }
    const bool several = factors.size() > 1;
    SymExpr product = make(Op::kMul, std::move(factors));
    is_open_product = several && product.op() == Op::kMul;
    return product;
  }

  SymExpr parse_unary() {
    if (!accept("-")) return parse_power();
    const Nesting nesting(*this);
    skip_space();
    if (position_ < text_.size() && is_digit(text_[position_])) {
      // The least integer has no positive counterpart, so the sign belongs to the literal; but -2**2 is
      // -(2**2).
      const size_t start = position_;
      const uint64_t magnitude = parse_magnitude();
      if (!at("**")) return SymExpr(static_cast<int64_t>(0 - magnitude));
      position_ = start;
    }
    return make(Op::kMul, {-1, parse_unary()});
  }

  SymExpr parse_power() {
    SymExpr base = parse_atom();
    if (!accept("**")) return base;
    const Nesting nesting(*this);
    return make(Op::kPow, {std::move(base), parse_unary()});
  }

  // At most 2**63.
  uint64_t parse_magnitude() {
    uint64_t magnitude = 0;
    const char* begin = text_.data() + position_;
    const auto [end, problem] = std::from_chars(begin, text_.data() + text_.size(), magnitude);
    if (problem != std::errc{} || magnitude > kTwoTo63) error("the integer does not fit into 64 bits");
    position_ += static_cast<size_t>(end - begin);
    return magnitude;
  }

  SymExpr parse_atom() {
    skip_space();
    if (position_ >= text_.size()) error("expected an expression, found the end");
    if (is_digit(text_[position_])) {
      const uint64_t magnitude = parse_magnitude();
      if (magnitude == kTwoTo63) error("the integer does not fit into 64 bits");
      return SymExpr(static_cast<int64_t>(magnitude));
    }
    if (accept("(")) {
      const Nesting nesting(*this);
      SymExpr inner = parse_or();
      if (!accept(")")) error("expected ')'");
      return inner;
    }
    const std::string_view word = peek_word();
    if (word.empty()) error(fmt::format("expected an expression, found '{}'", text_[position_]));
    if (accept_word("true") || accept_word("True")) return SymExpr(1);
    if (accept_word("false") || accept_word("False")) return SymExpr(0);
    if (!is_symbol_name(word)) error(fmt::format("'{}' cannot stand here", word));
    position_ += word.size();
    if (at("(")) return parse_call(word);
    return SymExpr::symbol(std::string(word));
  }

  SymExpr parse_call(std::string_view name) {
    const auto* function =
        std::find_if(kFunctions.begin(), kFunctions.end(), [&](const Function& f) { return f.name == name; });
    if (function == kFunctions.end()) {
      position_ -= name.size();
      error(fmt::format("unknown function '{}'", name));
    }
    accept("(");
    const Nesting nesting(*this);
    std::vector<SymExpr> operands;
    do {
      operands.push_back(parse_or());
    } while (accept(","));
    if (!accept(")")) error(fmt::format("expected ',' or ')' in {}(…)", name));
    return checked([&] { return SymExpr::make(function->op, std::move(operands)); });
  }

  std::string_view text_;
  size_t position_;
  int nesting_ = 0;
};

}  // namespace

bool is_symbol_name(std::string_view name) {
  if (name.empty() || !is_letter(name.front())) return false;
  if (!std::all_of(name.begin(), name.end(), [](char c) { return is_letter(c) || is_digit(c); }))
    return false;
  constexpr std::array<std::string_view, 7> kWords = {"and", "or", "not", "true", "false", "True", "False"};
  return std::find(kWords.begin(), kWords.end(), name) == kWords.end();
}

SymExpr parse_symbolic(std::string_view text, size_t& position) {
  SymbolicParser parser(text, position);
  SymExpr result = parser.parse_or();
  position = parser.position();
  return result;
}

SymExpr SymExpr::parse(std::string_view text) {
  const auto fail_at = [](size_t offset, std::string_view message) {
    fail(ErrorCode::kInvalidArgument, "symbolic size, column {}: {}", offset + 1, message);
  };
  try {
    size_t position = 0;
    SymExpr result = parse_symbolic(text, position);
    position = std::min(text.find_first_not_of(" \t\r\n", position), text.size());
    if (position < text.size()) fail_at(position, fmt::format("unexpected '{}'", text[position]));
    return result;
  } catch (const SymbolicSyntaxError& error) {
    fail_at(error.offset(), error.what());
    throw;
  }
}

}  // namespace halftone
