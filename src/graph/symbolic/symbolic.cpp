// Expressions of symbolic sizes: immutable trees that share their parts, with Python's rounding and checked
// 64-bit arithmetic. Simplification is small (constants, neutral elements): apart from that, expressions from
// files keep their form.
#include "halftone/graph/symbolic.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/errors.h"
#include "graph/symbolic/symbolic_text.h"

namespace halftone {

struct SymExpr::Tree {
  Op op = Op::kSymbol;
  std::string name;  // of symbols
  std::vector<SymExpr> operands;
  int depth = 1;
  size_t size = 1;  // nodes when written out; shared parts count each time
};

namespace {

using Op = SymExpr::Op;

// Every walk over a tree is recursive, and text is as long as the tree is large when written out: both are
// bounded where trees are made, so that no walk has to check.
constexpr int kMaxDepth = 128;
constexpr size_t kMaxSize = size_t{1} << 20;

[[noreturn]] void overflow(const char* what) {
  fail(ErrorCode::kInvalidArgument, "symbolic size: {} overflows 64 bits", what);
}

int64_t add(int64_t a, int64_t b) {
  const auto sum = checked_add(a, b);
  if (!sum) overflow("an addition");
  return *sum;
}

int64_t multiply(int64_t a, int64_t b) {
  const auto product = checked_mul(a, b);
  if (!product) overflow("a multiplication");
  return *product;
}

int64_t floor_divide(int64_t a, int64_t b) {
  if (b == 0) fail(ErrorCode::kInvalidArgument, "symbolic size: division by zero");
  if (b == -1) {
    if (a == std::numeric_limits<int64_t>::min()) overflow("a division");
    return -a;
  }
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

int64_t floor_modulo(int64_t a, int64_t b) {
  if (b == 0) fail(ErrorCode::kInvalidArgument, "symbolic size: remainder by zero");
  if (b == -1) return 0;  // INT64_MIN % -1 traps in hardware
  const int64_t remainder = a % b;
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

int64_t power(int64_t base, int64_t exponent) {
  if (exponent < 0) fail(ErrorCode::kInvalidArgument, "symbolic size: negative exponent {}", exponent);
  int64_t result = 1;
  while (true) {
    if (exponent & 1) result = multiply(result, base);
    exponent >>= 1;
    if (exponent == 0) return result;
    // Squaring only while a bit is left: the last square would overflow without being needed. 0, 1 and -1
    // never overflow.
    base = multiply(base, base);
  }
}

int64_t apply_binary(Op op, int64_t a, int64_t b) {
  switch (op) {
    case Op::kAdd:
      return add(a, b);
    case Op::kMul:
      return multiply(a, b);
    case Op::kFloorDiv:
      return floor_divide(a, b);
    case Op::kMod:
      return floor_modulo(a, b);
    case Op::kPow:
      return power(a, b);
    case Op::kMax:
      return std::max(a, b);
    case Op::kMin:
      return std::min(a, b);
    case Op::kEq:
      return a == b;
    case Op::kNe:
      return a != b;
    case Op::kLt:
      return a < b;
    case Op::kLe:
      return a <= b;
    case Op::kGt:
      return a > b;
    case Op::kGe:
      return a >= b;
    default:
      fail(ErrorCode::kInternal, "symbolic size: operation {} is not binary", static_cast<int>(op));
  }
}

void check_operand_count(Op op, size_t count) {
  size_t least = 2;
  size_t most = 2;
  switch (op) {
    case Op::kConstant:
    case Op::kSymbol:
      fail(ErrorCode::kInvalidArgument, "symbolic size: constants and symbols have no operands");
    case Op::kAdd:
    case Op::kMul:
    case Op::kMax:
    case Op::kMin:
    case Op::kAnd:
    case Op::kOr:
      most = std::numeric_limits<size_t>::max();
      break;
    case Op::kNot:
      least = most = 1;
      break;
    case Op::kIf:
      least = most = 3;
      break;
    default:
      break;
  }
  if (count < least || count > most) {
    fail(ErrorCode::kInvalidArgument, "symbolic size: {} does not take {} operands", symbolic_op_name(op),
         count);
  }
}

// Sums without 0, products without 1; nothing if no such operand is there. Both keep the order of the
// rest.
std::optional<SymExpr> drop_neutral(Op op, const std::vector<SymExpr>& operands) {
  const int64_t neutral = op == Op::kAdd ? 0 : 1;
  const auto is_neutral = [&](const SymExpr& e) { return e.as_constant() == neutral; };
  if (std::none_of(operands.begin(), operands.end(), is_neutral)) return std::nullopt;
  std::vector<SymExpr> rest;
  std::remove_copy_if(operands.begin(), operands.end(), std::back_inserter(rest), is_neutral);
  if (rest.empty()) return SymExpr(neutral);
  if (rest.size() == 1) return rest.front();
  return SymExpr::make(op, std::move(rest));
}

// What is known although some operand is not constant.
std::optional<SymExpr> fold_partly(Op op, const std::vector<SymExpr>& operands) {
  const auto any_constant = [&](auto predicate) {
    return std::any_of(operands.begin(), operands.end(),
                       [&](const SymExpr& e) { return e.is_constant() && predicate(e.constant()); });
  };
  const auto is_zero = [](int64_t value) { return value == 0; };
  switch (op) {
    case Op::kMul:
      if (any_constant(is_zero)) return SymExpr(0);
      return drop_neutral(op, operands);
    case Op::kAdd:
      return drop_neutral(op, operands);
    case Op::kAnd:
      if (any_constant(is_zero)) return SymExpr(0);
      return std::nullopt;
    case Op::kOr:
      if (any_constant([](int64_t value) { return value != 0; })) return SymExpr(1);
      return std::nullopt;
    case Op::kIf:
      if (operands[0].is_constant()) return operands[operands[0].constant() != 0 ? 1 : 2];
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace

SymExpr SymExpr::symbol(std::string name) {
  if (!is_symbol_name(name))
    fail(ErrorCode::kInvalidArgument, "symbolic size: \"{}\" is no name for a symbol", name);
  auto tree = std::make_shared<Tree>();
  tree->name = std::move(name);
  return SymExpr(std::move(tree));
}

SymExpr SymExpr::make(Op op, std::vector<SymExpr> operands) {
  check_operand_count(op, operands.size());
  if (auto folded = fold_partly(op, operands)) return *std::move(folded);
  auto tree = std::make_shared<Tree>();
  tree->op = op;
  for (const SymExpr& operand : operands) {
    tree->depth = std::max(tree->depth, operand.depth() + 1);
    tree->size += operand.size();
    if (tree->depth > kMaxDepth || tree->size > kMaxSize) {
      fail(ErrorCode::kInvalidArgument,
           "symbolic size: an expression is deeper than {} or larger than {} operations", kMaxDepth,
           kMaxSize);
    }
  }
  const bool all_constant =
      std::all_of(operands.begin(), operands.end(), [](const SymExpr& e) { return e.is_constant(); });
  tree->operands = std::move(operands);
  SymExpr result(std::move(tree));
  return all_constant ? SymExpr(result.evaluate({})) : result;
}

SymExpr::Op SymExpr::op() const {
  return tree_ ? tree_->op : Op::kConstant;
}
const std::vector<SymExpr>& SymExpr::operands() const {
  static const std::vector<SymExpr> none;
  return tree_ ? tree_->operands : none;
}
const std::string& SymExpr::symbol() const {
  static const std::string none;
  return tree_ ? tree_->name : none;
}
int SymExpr::depth() const {
  return tree_ ? tree_->depth : 1;
}
size_t SymExpr::size() const {
  return tree_ ? tree_->size : 1;
}

int64_t SymExpr::evaluate(const SymbolBindings& bindings) const {
  if (is_constant()) return value_;
  const auto& parts = tree_->operands;
  switch (tree_->op) {
    case Op::kSymbol: {
      const auto found = bindings.find(tree_->name);
      if (found == bindings.end()) fail(ErrorCode::kGuard, "the symbolic size {} has no value", tree_->name);
      return found->second;
    }
    case Op::kAnd:
      return std::all_of(parts.begin(), parts.end(),
                         [&](const SymExpr& e) { return e.evaluate(bindings) != 0; });
    case Op::kOr:
      return std::any_of(parts.begin(), parts.end(),
                         [&](const SymExpr& e) { return e.evaluate(bindings) != 0; });
    case Op::kNot:
      return parts[0].evaluate(bindings) == 0;
    case Op::kIf:
      return parts[parts[0].evaluate(bindings) != 0 ? 1 : 2].evaluate(bindings);
    default:
      break;
  }
  int64_t result = parts[0].evaluate(bindings);
  for (size_t i = 1; i < parts.size(); ++i)
    result = apply_binary(tree_->op, result, parts[i].evaluate(bindings));
  return result;
}

void SymExpr::collect_symbols(std::set<std::string>& names) const {
  if (is_symbol()) names.insert(tree_->name);
  for (const SymExpr& operand : operands()) operand.collect_symbols(names);
}

bool operator==(const SymExpr& a, const SymExpr& b) {
  if (!a.tree_ || !b.tree_) return a.tree_ == b.tree_ && a.value_ == b.value_;
  if (a.tree_ == b.tree_) return true;
  return a.tree_->op == b.tree_->op && a.tree_->name == b.tree_->name &&
         a.tree_->operands == b.tree_->operands;
}

}  // namespace halftone
