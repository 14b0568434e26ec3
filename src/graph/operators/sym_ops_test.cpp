#include "graph/operators/sym_ops.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "halftone/base/error.h"

namespace halftone {
namespace {

c10::IValue apply(std::string_view name, std::vector<c10::IValue> operands) {
  const SymFunction function = try_sym_function(name);
  EXPECT_NE(function, nullptr) << name;
  return function(operands);
}

// Expected values were read off a Python prompt.
TEST(SymOps, DivideAndRemainderRoundDownAsPythonDoes) {
  EXPECT_EQ(apply("sym::floordiv", {7, 2}).toInt(), 3);
  EXPECT_EQ(apply("sym::floordiv", {-7, 2}).toInt(), -4);
  EXPECT_EQ(apply("sym::floordiv", {7, -2}).toInt(), -4);
  EXPECT_EQ(apply("sym::mod", {-7, 2}).toInt(), 1);
  EXPECT_EQ(apply("sym::mod", {7, -2}).toInt(), -1);
  EXPECT_EQ(apply("sym::mod", {-8, 2}).toInt(), 0);
  EXPECT_DOUBLE_EQ(apply("sym::truediv", {7, 2}).toDouble(), 3.5);
  EXPECT_DOUBLE_EQ(apply("sym::mod", {-7.5, 2}).toDouble(), 0.5);
}

TEST(SymOps, IntegersStayIntegers) {
  EXPECT_TRUE(apply("sym::mul", {3, 4}).isInt());
  EXPECT_TRUE(apply("sym::mul", {3, 4.0}).isDouble());
  EXPECT_EQ(apply("sym::pow", {3, 4}).toInt(), 81);
  EXPECT_TRUE(apply("sym::pow", {2, -1}).isDouble());
  EXPECT_EQ(apply("sym::trunc", {-2.7}).toInt(), -2);
  EXPECT_EQ(apply("sym::floor", {-2.2}).toInt(), -3);
  EXPECT_EQ(apply("sym::ceil", {2.2}).toInt(), 3);
  EXPECT_EQ(apply("sym::round", {2.5}).toInt(), 2);
}

TEST(SymOps, ComparisonsAndChoices) {
  EXPECT_TRUE(apply("sym::lt", {1, 2}).toBool());
  EXPECT_FALSE(apply("sym::eq", {1, 2.0}).toBool());
  EXPECT_TRUE(apply("sym::not", {false}).toBool());
  EXPECT_EQ(apply("sym::max", {3, 9}).toInt(), 9);
  EXPECT_EQ(apply("sym::min", {3, 9}).toInt(), 3);
  EXPECT_EQ(apply("sym::ite", {true, 5, 6}).toInt(), 5);
}

TEST(SymOps, OverflowAndDivisionByZeroAreErrors) {
  const int64_t max = std::numeric_limits<int64_t>::max();
  EXPECT_THROW(apply("sym::add", {max, 1}), Error);
  EXPECT_THROW(apply("sym::mul", {max, 2}), Error);
  EXPECT_THROW(apply("sym::pow", {10, 40}), Error);
  EXPECT_THROW(apply("sym::floordiv", {1, 0}), Error);
  EXPECT_THROW(apply("sym::mod", {1, 0}), Error);
  EXPECT_THROW(apply("sym::floordiv", {std::numeric_limits<int64_t>::min(), -1}), Error);
  EXPECT_THROW(apply("sym::int", {1e300}), Error);
  EXPECT_THROW(apply("sym::lshift", {1, 64}), Error);
}

TEST(SymOps, UnknownNamesAreNone) {
  EXPECT_EQ(try_sym_function("sym::gcd"), nullptr);
}

}  // namespace
}  // namespace halftone
