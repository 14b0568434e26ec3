#include "halftone/graph/symbolic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace halftone {
namespace {

using Op = SymExpr::Op;
using ::testing::HasSubstr;
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

std::string error_of(const std::function<void()>& run, ErrorCode code = ErrorCode::kInvalidArgument) {
  try {
    run();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "no error";
}

std::string symbolic_parse_error(const std::string& text) {
  return error_of([&] { (void)SymExpr::parse(text); });
}

TEST(SymExpr, EvaluatesAsPythonDoes) {
  // Right-hand sides checked with CPython for a=7, b=-3, c=2; "or" gives 1 here where Python gives an
  // operand.
  const std::vector<std::pair<std::string, int64_t>> cases = {
      {"a//b", -3},        {"a%b", -2},         {"b//c", -2},
      {"b%c", 1},          {"-a//c", -4},       {"-(a//c)", -3},
      {"-a%c", 1},         {"a - b - c", 8},    {"a - (b - c)", 12},
      {"a//c//c", 1},      {"a//(c//c)", 7},    {"a*c//b%c", 1},
      {"2**c**3", 256},    {"(2**c)**3", 64},   {"-2**2", -4},
      {"(-2)**2", 4},      {"a % c * 5", 5},    {"5 * a % c", 1},
      {"not a == 7", 0},   {"not (a == 7)", 0}, {"a < b or c", 1},
      {"1 or a and 0", 1}, {"max(a, b, c)", 7}, {"min(a, b, c)", -3},
      {"- -a", 7},         {"a*-b", 21},        {"2**-b", 8},
      {"a >= 7", 1},       {"a != 7", 0},       {"if(a > c, b, c)", -3},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(SymExpr::parse(text).evaluate({{"a", 7}, {"b", -3}, {"c", 2}}), expected) << text;
  }
}

TEST(SymExpr, PrintsReadably) {
  for (const char* text : {"2*s0 + 1",
                           "s0 - 1",
                           "s0 - 2*s1",
                           "s0 - s1",
                           "-s0",
                           "s0//2 - 1",
                           "(s0 + 1)//2",
                           "2*s0//3",
                           "s0//(2*s1)",
                           "-(s0*s1)",
                           "(s0 + s1)*s2",
                           "s0**2",
                           "(-s0)**2",
                           "max(s0, 1)",
                           "s0 < 3 and s1 >= 2",
                           "not s0 == s1",
                           "(s0 or s1) and s2",
                           "if(s0 > 1, s0, 1)",
                           "s0 - (s1 + s2)",
                           "(s0*s1)*s2",
                           "s0*(s1*s2)",
                           "(s0 + s1) + s2",
                           "s0 - s1*s2",
                           "s0%2 == 0",
                           "s0 + -9223372036854775808",
                           "s0 - (2*(3*s1))"}) {
    EXPECT_EQ(SymExpr::parse(text).to_string(), text);
  }
}

TEST(SymExpr, ReadsTheSpellingOfExportedFiles) {
  EXPECT_EQ(SymExpr::parse("Max(1, s0)"), SymExpr::parse("max(1, s0)"));
  EXPECT_EQ(SymExpr::parse("Mod(s0, 2)"), SymExpr::parse("s0 % 2"));
  EXPECT_EQ(SymExpr::parse("FloorDiv(s0, 2)"), SymExpr::parse("((s0//2))"));
  EXPECT_EQ(SymExpr::parse("Eq(s0, 2) & (s1 < 3)"), SymExpr::parse("s0 == 2 and s1 < 3"));
  EXPECT_EQ(SymExpr::parse("True"), SymExpr(1));
}

TEST(SymExpr, FoldsConstantsAndNeutralOperands) {
  const SymExpr s = SymExpr::symbol("s0");
  EXPECT_EQ(SymExpr::make(Op::kAdd, {2, 3, 4}).as_constant(), 9);
  EXPECT_EQ(SymExpr::make(Op::kAdd, {s, 0}), s);
  EXPECT_EQ(SymExpr::make(Op::kMul, {1, s, 1}), s);
  EXPECT_EQ(SymExpr::make(Op::kMul, {0, s}).as_constant(), 0);
  EXPECT_EQ(SymExpr::make(Op::kIf, {1, s, 5}), s);
  EXPECT_EQ(SymExpr::make(Op::kAnd, {s, 0}).as_constant(), 0);
  EXPECT_FALSE(SymExpr::make(Op::kMul, {2, s}) == SymExpr::make(Op::kMul, {s, 2}));
}

TEST(SymExpr, RefusesWrongNumbersOfOperands) {
  EXPECT_THAT(error_of([] {
                (void)SymExpr::make(Op::kFloorDiv, {1, 2, 3});
              }),
              HasSubstr("// does not take 3"));
  EXPECT_THAT(error_of([] { (void)SymExpr::make(Op::kNot, {}); }), HasSubstr("not does not take 0"));
  EXPECT_THAT(error_of([] { (void)SymExpr::make(Op::kAdd, {1}); }), HasSubstr("+ does not take 1"));
  EXPECT_THAT(error_of([] { (void)SymExpr::make(Op::kSymbol, {}); }), HasSubstr("no operands"));
  EXPECT_THAT(error_of([] { (void)SymExpr::symbol("a b"); }), HasSubstr("no name"));
  EXPECT_THAT(error_of([] { (void)SymExpr::symbol("not"); }), HasSubstr("no name"));
}

TEST(SymExpr, OverflowIsAnErrorInFoldingAndInEvaluation) {
  const SymExpr s = SymExpr::symbol("s");
  const auto evaluate = [&](Op op, int64_t value, int64_t other) {
    EXPECT_THAT(error_of([&] { (void)SymExpr::make(op, {value, other}); }), HasSubstr("overflows"));
    return error_of([&] { (void)SymExpr::make(op, {s, other}).evaluate({{"s", value}}); });
  };
  EXPECT_THAT(evaluate(Op::kAdd, kMax, 1), HasSubstr("overflows"));
  EXPECT_THAT(evaluate(Op::kMul, kLeast, -1), HasSubstr("overflows"));
  EXPECT_THAT(evaluate(Op::kFloorDiv, kLeast, -1), HasSubstr("overflows"));
  EXPECT_THAT(evaluate(Op::kPow, 10, 19), HasSubstr("overflows"));
  EXPECT_EQ(SymExpr::make(Op::kMod, {kLeast, -1}).as_constant(), 0);
  EXPECT_EQ(SymExpr::make(Op::kPow, {-1, kMax}).as_constant(), -1);
  EXPECT_EQ(SymExpr::make(Op::kPow, {-2, 63}).as_constant(), kLeast);
  EXPECT_THAT(error_of([&] {
                (void)SymExpr::parse("s//0").evaluate({{"s", 1}});
              }),
              HasSubstr("division by zero"));
  EXPECT_THAT(error_of([&] { (void)SymExpr::parse("s%0").evaluate({{"s", 1}}); }), HasSubstr("by zero"));
  EXPECT_THAT(error_of([&] {
                (void)SymExpr::parse("2**s").evaluate({{"s", -1}});
              }),
              HasSubstr("negative exponent"));
  EXPECT_THAT(error_of([&] { (void)s.evaluate({}); }, ErrorCode::kGuard), HasSubstr("s has no value"));
}

TEST(SymExpr, ParseErrorsNameTheColumn) {
  EXPECT_THAT(symbolic_parse_error(""), HasSubstr("column 1: expected an expression"));
  EXPECT_THAT(symbolic_parse_error("s0 + "), HasSubstr("column 6: expected an expression"));
  EXPECT_THAT(symbolic_parse_error("(s0"), HasSubstr("column 4: expected ')'"));
  EXPECT_THAT(symbolic_parse_error("s0 s1"), HasSubstr("column 4: unexpected 's'"));
  EXPECT_THAT(symbolic_parse_error("s0 / 2"), HasSubstr("column 4: unexpected '/'"));
  EXPECT_THAT(symbolic_parse_error("log(s0)"), HasSubstr("column 1: unknown function 'log'"));
  EXPECT_THAT(symbolic_parse_error("max(s0)"), HasSubstr("max does not take 1 operands"));
  EXPECT_THAT(symbolic_parse_error("if(s0, 1)"), HasSubstr("if does not take 2 operands"));
  EXPECT_THAT(symbolic_parse_error("a < b < c"), HasSubstr("chained"));
  EXPECT_THAT(symbolic_parse_error("9223372036854775808"), HasSubstr("64 bits"));
  EXPECT_THAT(symbolic_parse_error("99999999999999999999"), HasSubstr("64 bits"));
  EXPECT_THAT(symbolic_parse_error("9223372036854775807 + 1"), HasSubstr("overflows"));
  EXPECT_THAT(symbolic_parse_error("1//0"), HasSubstr("division by zero"));
  EXPECT_THAT(symbolic_parse_error("and"), HasSubstr("'and' cannot stand here"));
  EXPECT_THAT(symbolic_parse_error("\xff"), HasSubstr("column 1"));
}

TEST(SymExpr, DeepTextIsAnErrorAndNoCrash) {
  const auto repeat = [](const std::string& text, size_t count) {
    std::string result;
    for (size_t i = 0; i < count; ++i) result += text;
    return result;
  };
  EXPECT_THAT(symbolic_parse_error(repeat("(", 100000)), HasSubstr("deeper"));
  EXPECT_THAT(symbolic_parse_error(repeat("-", 100000) + "s"), HasSubstr("deeper"));
  EXPECT_THAT(symbolic_parse_error(repeat("not ", 100000) + "s"), HasSubstr("deeper"));
  EXPECT_THAT(symbolic_parse_error(repeat("max(1, ", 100000)), HasSubstr("deeper"));
  EXPECT_THAT(symbolic_parse_error(repeat("s**", 100000) + "s"), HasSubstr("deeper"));
  EXPECT_THAT(symbolic_parse_error("s" + repeat("//s", 100000)), HasSubstr("deeper"));
  // A long sum is wide, not deep.
  EXPECT_EQ(SymExpr::parse("s" + repeat(" + s", 100000)).evaluate({{"s", 1}}), 100001);
}

TEST(SymExpr, SharedPartsCannotGrowWithoutBound) {
  SymExpr e = SymExpr::symbol("s");
  EXPECT_THAT(error_of([&] {
                for (int i = 0; i < 64; ++i) e = SymExpr::make(Op::kMul, {e, e});
              }),
              HasSubstr("larger than"));
}

TEST(SymExpr, TheDeepestTreesCanBeReadBack) {
  for (const Op op : {Op::kMul, Op::kPow, Op::kNot, Op::kAnd, Op::kFloorDiv, Op::kMax}) {
    SymExpr e = SymExpr::symbol("s");
    for (int i = 0; i < 127; ++i) {
      e = op == Op::kNot   ? SymExpr::make(op, {e})
          : op == Op::kMul ? SymExpr::make(i % 2 ? Op::kMul : Op::kAdd, {-1, e})
                           : SymExpr::make(op, {SymExpr::symbol("t"), e});
    }
    EXPECT_EQ(SymExpr::parse(e.to_string()), e) << e.to_string();
    EXPECT_THROW((void)SymExpr::make(Op::kAdd, {e, SymExpr::symbol("t")}), Error);
  }
}

// An expression and, built beside it from the rules of Python's integers, the function it must compute:
// nothing if Python raises, or if a partial result leaves 64 bits.
using Wide = __int128;
using Oracle = std::function<std::optional<Wide>(const SymbolBindings&)>;
struct Sample {
  SymExpr expression;
  Oracle oracle;
};

std::optional<Wide> narrow(Wide value) {
  if (value < kLeast || value > kMax) return std::nullopt;
  return value;
}

std::optional<Wide> python_binary(Op op, Wide a, Wide b) {
  switch (op) {
    case Op::kAdd:
      return narrow(a + b);
    case Op::kMul:
      return narrow(a * b);
    case Op::kFloorDiv:
    case Op::kMod: {
      if (b == 0) return std::nullopt;
      // The one remainder r = a - q*b that lies in [0, b), or in (b, 0] for negative b.
      const Wide size = b < 0 ? -b : b;
      const Wide positive = ((a % size) + size) % size;
      const Wide r = b < 0 && positive != 0 ? positive - size : positive;
      return narrow(op == Op::kMod ? r : (a - r) / b);
    }
    case Op::kMax:
      return a < b ? b : a;
    case Op::kMin:
      return b < a ? b : a;
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
    default:
      return a >= b;
  }
}

class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  Sample make(int depth) {
    if (depth == 0 || pick(6) == 0) return make_leaf();
    constexpr std::array kOps = {Op::kAdd, Op::kAdd, Op::kMul, Op::kMul, Op::kFloorDiv, Op::kMod, Op::kMax,
                                 Op::kMin, Op::kEq,  Op::kNe,  Op::kLt,  Op::kLe,       Op::kGt,  Op::kGe};
    const Op op = kOps[pick(kOps.size())];
    const bool wide = op == Op::kAdd || op == Op::kMul || op == Op::kMax || op == Op::kMin;
    std::vector<SymExpr> operands;
    std::vector<Oracle> oracles;
    for (size_t i = 0, count = wide ? 2 + pick(2) : 2; i < count; ++i) {
      Sample part = make(depth - 1);
      operands.push_back(part.expression);
      oracles.push_back(std::move(part.oracle));
    }
    return {SymExpr::make(op, std::move(operands)), [op, oracles](const SymbolBindings& bindings) {
              std::optional<Wide> result = oracles[0](bindings);
              for (size_t i = 1; i < oracles.size() && result; ++i) {
                const auto next = oracles[i](bindings);
                result = next ? python_binary(op, *result, *next) : std::nullopt;
              }
              return result;
            }};
  }

  int64_t number() {
    constexpr std::array<int64_t, 6> kSpecial = {0, 1, -1, 2, kLeast, kMax};
    return pick(8) == 0 ? kSpecial[pick(kSpecial.size())] : static_cast<int64_t>(pick(41)) - 20;
  }

 private:
  size_t pick(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random_); }
  Sample make_leaf() {
    if (pick(3) == 0) {
      const int64_t value = number();
      return {value, [value](const SymbolBindings&) { return std::optional<Wide>(value); }};
    }
    const std::string name = "s" + std::to_string(pick(3));
    return {SymExpr::symbol(name), [name](const SymbolBindings& bindings) -> std::optional<Wide> {
              return bindings.find(name)->second;
            }};
  }
  std::mt19937 random_;
};

TEST(SymExpr, RandomExpressionsReadBackAndAgreeWithPythonsRules) {
  Generator generator(20260);
  size_t made = 0;
  size_t compared = 0;
  for (int round = 0; round < 20000; ++round) {
    std::optional<Sample> sample;
    try {
      sample = generator.make(4);
    } catch (const Error&) {
      continue;  // folding met an overflow or a division by zero
    }
    ++made;
    const std::string text = sample->expression.to_string();
    ASSERT_EQ(SymExpr::parse(text), sample->expression) << text;
    for (int i = 0; i < 3; ++i) {
      const SymbolBindings bindings = {
          {"s0", generator.number()}, {"s1", generator.number()}, {"s2", generator.number()}};
      const std::optional<Wide> expected = sample->oracle(bindings);
      if (!expected) continue;  // where Python raises, folding 0*x may still give a value
      ASSERT_EQ(sample->expression.evaluate(bindings), static_cast<int64_t>(*expected)) << text;
      ++compared;
    }
  }
  EXPECT_GT(made, 10000U);
  EXPECT_GT(compared, 20000U);
}

TEST(TrySolve, FindsTheOneUnknownOfALinearForm) {
  using Solution = std::optional<std::pair<std::string, int64_t>>;
  const SymbolBindings bindings = {{"t", 5}};
  const auto solve = [&](const char* text, int64_t value) {
    return try_solve(SymExpr::parse(text), value, bindings);
  };
  EXPECT_EQ(solve("s", 7), Solution({"s", 7}));
  EXPECT_EQ(solve("2*s + 1", 7), Solution({"s", 3}));
  EXPECT_EQ(solve("t*s - t", 10), Solution({"s", 3}));
  EXPECT_EQ(solve("4*(s + t)//2", 20), Solution({"s", 5}));
  EXPECT_EQ(solve("10 - s", 3), Solution({"s", 7}));
  EXPECT_EQ(solve("s*(t%2) + max(t, 1)", 8), Solution({"s", 3}));
  EXPECT_EQ(solve("2*s + 1", 8), std::nullopt);
  EXPECT_EQ(solve("s*s", 9), std::nullopt);
  EXPECT_EQ(solve("s//2", 3), std::nullopt);
  EXPECT_EQ(solve("s + u", 3), std::nullopt);
  EXPECT_EQ(solve("t", 5), std::nullopt);
  EXPECT_EQ(solve("s*(t - 5)", 0), std::nullopt);
  EXPECT_EQ(solve("s//(t - 5)", 0), std::nullopt);
  EXPECT_EQ(solve("s - 9223372036854775807", 9), std::nullopt);
  EXPECT_EQ(solve("-s", kLeast), std::nullopt);
}

}  // namespace
}  // namespace halftone
