// Expressions as torch's sympy printed them (srepr of the expressions in comments).
#include "capture/sympy.h"

#include <gtest/gtest.h>

#include <string>

namespace halftone {
namespace {

const SymbolBindings kBindings = {{"s0", 7}, {"s1", 3}, {"u0", -5}};

struct Readable {
  const char* text;
  int64_t value;  ///< with s0 = 7, s1 = 3, u0 = -5
};

class SympyReadable : public testing::TestWithParam<Readable> {};

TEST_P(SympyReadable, HasTheValueThatSympyGives) {
  const auto expression = try_parse_sympy(GetParam().text);
  ASSERT_TRUE(expression) << GetParam().text;
  EXPECT_EQ(expression->evaluate(kBindings), GetParam().value) << GetParam().text;
}

#define S0 "Symbol('s0', positive=True, integer=True)"
#define S1 "Symbol('s1', positive=True, integer=True)"
#define U0 "Symbol('u0', integer=True)"

INSTANTIATE_TEST_SUITE_P(
    All, SympyReadable,
    testing::Values(
        Readable{S0, 7}, Readable{"Integer(-3)", -3}, Readable{"Add(" S0 ", Integer(1))", 8},
        Readable{"Mul(Integer(2), " S0 ", " S1 ")", 42},        // 2*s0*s1
        Readable{"Add(Mul(Integer(-1), " S0 "), " S1 ")", -4},  // s1 - s0
        Readable{"Pow(" S0 ", Integer(2))", 49}, Readable{"PowByNatural(" S1 ", Integer(3))", 27},
        Readable{"FloorDiv(" U0 ", Integer(2))", -3},  // rounds down
        Readable{"CleanDiv(Mul(" S0 ", Integer(6)), Integer(3))", 14},
        Readable{"CeilDiv(" S0 ", Integer(2))", 4}, Readable{"Mod(" S0 ", Integer(4))", 3},
        Readable{"PythonMod(" U0 ", Integer(3))", 1},                    // the divisor's sign
        Readable{"ModularIndexing(" S0 ", Integer(2), Integer(2))", 1},  // s0 // 2 % 2
        Readable{"Max(Integer(1), " S0 ", " S1 ")", 7}, Readable{"Min(" S0 ", " S1 ")", 3},
        Readable{"Equality(" S0 ", Integer(7))", 1}, Readable{"Unequality(" S0 ", Integer(7))", 0},
        Readable{"StrictLessThan(" S0 ", Integer(7))", 0}, Readable{"LessThan(" S0 ", Integer(7))", 1},
        Readable{"StrictGreaterThan(" S0 ", Integer(6))", 1}, Readable{"GreaterThan(" U0 ", Integer(0))", 0},
        Readable{"And(GreaterThan(" S0 ", Integer(2)), LessThan(" S1 ", Integer(3)))", 1},
        Readable{"Or(Equality(" S0 ", Integer(2)), Equality(" S1 ", Integer(2)))", 0},
        Readable{"Not(Equality(" S0 ", Integer(2)))", 1}, Readable{"true", 1}, Readable{"false", 0},
        Readable{"Piecewise(ExprCondPair(Integer(1), GreaterThan(" S0 ", Integer(8))), "
                 "ExprCondPair(Integer(2), GreaterThan(" S0 ", Integer(7))), ExprCondPair(" S1 ", true))",
                 2},
        Readable{"Where(GreaterThan(" S0 ", Integer(8)), Integer(1), " S1 ")", 3},
        Readable{"TruncToInt(ToFloat(" S0 "))", 7}, Readable{"LShift(" S1 ", Integer(2))", 12},
        Readable{"RShift(" S0 ", Integer(1))", 3},
        Readable{"Max(Integer(0), Add(" S0 ", Integer(-9)), evaluate=False)", 0}));

class SympyUnreadable : public testing::TestWithParam<std::string> {};

TEST_P(SympyUnreadable, IsNothingAndNoError) {
  EXPECT_FALSE(try_parse_sympy(GetParam())) << GetParam().substr(0, 80);
}

std::string nested(size_t depth) {
  std::string text;
  for (size_t i = 0; i < depth; ++i) text += "Add(Integer(1), ";
  return text + "Integer(1)" + std::string(depth, ')');
}

INSTANTIATE_TEST_SUITE_P(All, SympyUnreadable,
                         testing::Values("", " ", "Symbol('s0'", "Symbol('')", "Symbol('s 0')", "Symbol(s0)",
                                         "Integer()", "Integer(1.5)", "Integer(99999999999999999999)", "Add(",
                                         "Add(Integer(1)", "Add(Integer(1),)", "Add(Integer(1)))",
                                         "Float('1.5', precision=53)", "Rational(1, 2)",
                                         "IntTrueDiv(" S0 ", Integer(2))", "OpaqueUnaryFn_sqrt(" S0 ")",
                                         "Pow(" S0 ", Integer(-1))", "Mystery(" S0 ")", "int_oo",
                                         "Mul(Integer(9223372036854775807), Integer(2))", "FloorDiv(" S0 ")",
                                         "FloorDiv(Integer(1), Integer(0))",
                                         "Piecewise(ExprCondPair(Integer(1), GreaterThan(" S0
                                         ", Integer(8))))",
                                         "Piecewise()", "__import__('os').system('true')", nested(100),
                                         nested(10'000), std::string(100'000, '(')));

TEST(SympyTest, KeepsTheStructure) {
  const auto expression = try_parse_sympy("Add(Mul(Integer(2), " S0 "), Integer(1))");
  ASSERT_TRUE(expression);
  EXPECT_EQ(*expression, SymExpr::parse("2*s0 + 1"));
}

TEST(SympyTest, SymbolNames) {
  EXPECT_TRUE(is_python_name("s0"));
  EXPECT_TRUE(is_python_name("_a_B9"));
  for (const char* bad : {"", "9a", "a b", "a.b", "a'", "ä", "%"}) EXPECT_FALSE(is_python_name(bad)) << bad;
}

}  // namespace
}  // namespace halftone
