// In-place operators become functional ones only if nothing can see the difference.
#include "graph/rewrite/functionalize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/test_support.h"

namespace halftone {
namespace {

std::pair<size_t, std::string> functionalized(const std::string& body) {
  const auto graph = parse_graph("graph(%x: user \"x\" f32[4]) {" + body + "}");
  const size_t count = functionalize(*graph);
  return {count, print_graph(*graph)};
}

TEST(Functionalize, ChainsOfFreshResults) {
  const auto [count, text] = functionalized(R"(
    %a: f32[4] = aten::add.Tensor(%x, 1)
    %b: f32[4] = aten::add_.Tensor(%a, %x)
    %c: f32[4] = aten::relu_(%b)
    return %c)");
  EXPECT_EQ(count, 2U);
  EXPECT_THAT(text, ::testing::HasSubstr("%b: f32[4] = aten::add.Tensor(%a, %x)"));
  EXPECT_THAT(text, ::testing::HasSubstr("%c: f32[4] = aten::relu(%b)"));
}

TEST(Functionalize, NotWhatOthersSee) {
  // An input of the model; a result that is read again; views and dropout of such a result.
  EXPECT_EQ(functionalized("%a: f32[4] = aten::relu_(%x) return %a").first, 0U);
  EXPECT_EQ(functionalized(R"(
    %a: f32[4] = aten::add.Tensor(%x, 1)
    %b: f32[4] = aten::relu_(%a)
    return %a, %b)")
                .first,
            0U);
  EXPECT_EQ(functionalized(R"(
    %a: f32[4] = aten::add.Tensor(%x, 1)
    %v: f32[2, 2] = aten::view(%a, [2, 2])
    %b: f32[2, 2] = aten::relu_(%v)
    return %a, %b)")
                .first,
            0U);
  EXPECT_EQ(functionalized(R"(
    %a: f32[4] = aten::add.Tensor(%x, 1)
    %d: f32[4] = aten::dropout(%a, 0.5, false)
    %b: f32[4] = aten::relu_(%d)
    return %a, %b)")
                .first,
            0U);
}

TEST(Functionalize, ViewsOfWhatNobodyElseReads) {
  EXPECT_EQ(functionalized(R"(
    %a: f32[4] = aten::add.Tensor(%x, 1)
    %v: f32[2, 2] = aten::view(%a, [2, 2])
    %b: f32[2, 2] = aten::relu_(%v)
    return %b)")
                .first,
            1U);
}

TEST(Functionalize, OfIntegersOnlyArithmetic) {
  const std::string made = "%a: f32[4] = aten::add.Tensor(%x, 1) %i: i64[4] = aten::argsort(%a) ";
  EXPECT_EQ(functionalized(made + "%b: i64[4] = aten::logit_(%i) return %b").first, 0U);
  EXPECT_EQ(functionalized(made + "%b: i64[4] = aten::neg_(%i) return %b").first, 1U);
}

TEST(Functionalize, NotWhereTheFunctionalFormGivesBools) {
  for (const char* call :
       {"eq_.Scalar(%a, 1)", "less_.Scalar(%a, 1)", "logical_not_(%a)", "ge_.Tensor(%a, %x)"})
    EXPECT_EQ(functionalized(std::string("%a: f32[4] = aten::add.Tensor(%x, 1) %b: f32[4] = aten::") + call +
                             " return %b")
                  .first,
              0U)
        << call;
  EXPECT_EQ(
      functionalized("%a: bool[4] = aten::eq.Scalar(%x, 1) %b: bool[4] = aten::logical_not_(%a) return %b")
          .first,
      1U);
}

TEST(Functionalize, NotWhereTheFunctionalFormWouldPromote) {
  EXPECT_EQ(functionalized(R"(
    %a: f32[4] = aten::add.Tensor(%x, 1)
    %d: f64[4] = aten::_to_copy(%x, dtype=dtype:f64)
    %b: f32[4] = aten::add_.Tensor(%a, %d)
    return %b)")
                .first,
            0U);
}

}  // namespace
}  // namespace halftone
