// Expressions of symbolic sizes as text, with as few parentheses as Python needs.
#include "graph/symbolic/symbolic_text.h"
#include "halftone/graph/symbolic.h"

namespace halftone {
namespace {

using Op = SymExpr::Op;

// How tightly an expression binds, loosest first. An operand is put in parentheses where it binds more
// loosely than its place asks.
enum Level {
  kOrLevel,
  kAndLevel,
  kNotLevel,
  kCompareLevel,
  kSumLevel,
  kProductLevel,
  kUnaryLevel,
  kPowerLevel,
  kAtomLevel
};

bool is_negation(const SymExpr& e) {
  return e.op() == Op::kMul && e.operands().size() == 2 && e.operands().front().as_constant() == -1;
}

Level level_of(const SymExpr& e) {
  switch (e.op()) {
    case Op::kConstant:
      return e.constant() < 0 ? kUnaryLevel : kAtomLevel;
    case Op::kOr:
      return kOrLevel;
    case Op::kAnd:
      return kAndLevel;
    case Op::kNot:
      return kNotLevel;
    case Op::kEq:
    case Op::kNe:
    case Op::kLt:
    case Op::kLe:
    case Op::kGt:
    case Op::kGe:
      return kCompareLevel;
    case Op::kAdd:
      return kSumLevel;
    case Op::kMul:
      return is_negation(e) ? kUnaryLevel : kProductLevel;
    case Op::kFloorDiv:
    case Op::kMod:
      return kProductLevel;
    case Op::kPow:
      return kPowerLevel;
    default:
      return kAtomLevel;
  }
}

class Printer {
 public:
  void print(const SymExpr& e, Level place) {
    const bool parentheses = level_of(e) < place;
    if (parentheses) out_ += '(';
    print_bare(e);
    if (parentheses) out_ += ')';
  }
  std::string take() { return std::move(out_); }

 private:
  void print_bare(const SymExpr& e) {
    const auto& parts = e.operands();
    switch (e.op()) {
      case Op::kConstant:
        out_ += std::to_string(e.constant());
        return;
      case Op::kSymbol:
        out_ += e.symbol();
        return;
      case Op::kAdd:
        return print_sum(parts);
      case Op::kMul:
        if (is_negation(e)) {
          out_ += '-';
          return print(parts[1], kUnaryLevel);
        }
        return print_chain(parts, "*", kUnaryLevel, first_factor_level(parts[0]));
      // a*b//c is (a*b)//c when read, so the left side may be a product.
      case Op::kFloorDiv:
        return print_chain(parts, "//", kUnaryLevel, kProductLevel);
      case Op::kMod:
        return print_chain(parts, "%", kUnaryLevel, kProductLevel);
      case Op::kPow:
        return print_chain(parts, "**", kUnaryLevel, kAtomLevel);
      case Op::kAnd:
        return print_chain(parts, " and ", kNotLevel, kNotLevel);
      case Op::kOr:
        return print_chain(parts, " or ", kAndLevel, kAndLevel);
      case Op::kNot:
        out_ += "not ";
        return print(parts[0], kNotLevel);
      case Op::kMax:
      case Op::kMin:
      case Op::kIf:
        out_ += symbolic_op_name(e.op());
        out_ += '(';
        print_chain(parts, ", ", kOrLevel, kOrLevel);
        out_ += ')';
        return;
      default: {
        std::string sign(1, ' ');
        (sign += symbolic_op_name(e.op())) += ' ';
        return print_chain(parts, sign, kSumLevel, kSumLevel);
      }
    }
  }

  // a//b*c is read as (a//b)*c; but a product inside a product would be read as one long product.
  static Level first_factor_level(const SymExpr& factor) {
    return factor.op() == Op::kMul ? kUnaryLevel : kProductLevel;
  }

  void print_chain(const std::vector<SymExpr>& parts, std::string_view sign, Level place, Level first_place) {
    print(parts[0], first_place);
    for (size_t i = 1; i < parts.size(); ++i) {
      out_ += sign;
      print(parts[i], place);
    }
  }

  void print_sum(const std::vector<SymExpr>& terms) {
    print(terms[0], kProductLevel);
    for (size_t i = 1; i < terms.size(); ++i) {
      if (!print_subtraction(terms[i])) {
        out_ += " + ";
        print(terms[i], kProductLevel);
      }
    }
  }

  // " - 3", " - x", " - 2*x" for the terms that the parser reads back from there; false for others, the least
  // integer among them.
  bool print_subtraction(const SymExpr& term) {
    const bool product = term.op() == Op::kMul;
    const auto factor = product ? term.operands().front().as_constant() : term.as_constant();
    if (!factor || *factor >= 0 || *factor == std::numeric_limits<int64_t>::min()) return false;
    if (is_negation(term)) {
      const SymExpr& negated = term.operands()[1];
      const bool ambiguous = negated.op() == Op::kMul && negated.operands().front().is_constant();
      out_ += " - ";
      if (!ambiguous) {
        print(negated, kProductLevel);
      } else {
        out_ += '(';
        print(negated, kOrLevel);
        out_ += ')';
      }
      return true;
    }
    if (product && *factor == -1) return false;  // " - 1*a*b" would lose the 1
    out_ += " - ";
    if (!product) {
      out_ += std::to_string(-*factor);
      return true;
    }
    std::vector<SymExpr> factors = term.operands();
    factors.front() = SymExpr(-*factor);
    print_chain(factors, "*", kUnaryLevel, kUnaryLevel);
    return true;
  }

  std::string out_;
};

}  // namespace

std::string_view symbolic_op_name(SymExpr::Op op) {
  switch (op) {
    case Op::kConstant:
      return "constant";
    case Op::kSymbol:
      return "symbol";
    case Op::kAdd:
      return "+";
    case Op::kMul:
      return "*";
    case Op::kFloorDiv:
      return "//";
    case Op::kMod:
      return "%";
    case Op::kPow:
      return "**";
    case Op::kMax:
      return "max";
    case Op::kMin:
      return "min";
    case Op::kEq:
      return "==";
    case Op::kNe:
      return "!=";
    case Op::kLt:
      return "<";
    case Op::kLe:
      return "<=";
    case Op::kGt:
      return ">";
    case Op::kGe:
      return ">=";
    case Op::kAnd:
      return "and";
    case Op::kOr:
      return "or";
    case Op::kNot:
      return "not";
    case Op::kIf:
      return "if";
  }
  return "unknown";
}

std::string SymExpr::to_string() const {
  Printer printer;
  printer.print(*this, kOrLevel);
  return printer.take();
}

}  // namespace halftone
