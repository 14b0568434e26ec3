#include <gtest/gtest.h>

#include "halftone/graph/graph.h"

namespace halftone {
namespace {

bool line_has_side_effects(const std::string& line) {
  const auto graph = parse_graph(
      "graph(%x: user \"x\" f32[2, 3], %m: buffer \"m\" f32[3], %n: user \"n\" int, %b: user \"b\" bool) "
      "{\n" +
      line + "\nreturn\n}");
  return has_side_effects(*graph->nodes().front());
}

TEST(SideEffects, PureOperatorsHaveNone) {
  EXPECT_FALSE(line_has_side_effects("%y: tensor = aten::relu(%x)"));
  EXPECT_FALSE(line_has_side_effects("%y: int = sym::add(%n, 1)"));
  EXPECT_FALSE(line_has_side_effects("%y: tensor = aten::view(%x, [6])"));
}

TEST(SideEffects, MutationAssertionsAndRandomNumbersHave) {
  EXPECT_TRUE(line_has_side_effects("%y: tensor = aten::relu_(%x)"));
  EXPECT_TRUE(line_has_side_effects("%y: tensor = aten::copy_(%x, %m)"));
  EXPECT_TRUE(line_has_side_effects("aten::_assert_scalar(%b, \"no\")"));
  EXPECT_TRUE(line_has_side_effects("aten::_assert_async.msg(%x, \"no\")"));
  EXPECT_TRUE(line_has_side_effects("aten::sym_constrain_range_for_size(%n)"));
  EXPECT_TRUE(line_has_side_effects("%y: tensor = aten::rand([2])"));
  EXPECT_TRUE(line_has_side_effects("%y: tensor = aten::bernoulli(%x)"));
}

TEST(SideEffects, DropoutDrawsOnlyInTraining) {
  EXPECT_TRUE(line_has_side_effects("%y: tensor = aten::dropout(%x, 0.5, true)"));
  EXPECT_TRUE(line_has_side_effects("%y: tensor = aten::dropout(%x, 0.5, %b)"));
  EXPECT_FALSE(line_has_side_effects("%y: tensor = aten::dropout(%x, 0.5, false)"));
  EXPECT_FALSE(line_has_side_effects("%y: tensor = aten::scaled_dot_product_attention(%x, %x, %x)"));
  EXPECT_TRUE(
      line_has_side_effects("%y: tensor = aten::scaled_dot_product_attention(%x, %x, %x, None, 0.1)"));
}

TEST(SideEffects, BatchNormUpdatesStatisticsOnlyInTraining) {
  const auto norm = [](const std::string& mean, const std::string& training) {
    return line_has_side_effects("%y: tensor = aten::batch_norm(%x, None, None, " + mean + ", " + mean +
                                 ", " + training + ", 0.1, 1e-5, false)");
  };
  EXPECT_TRUE(norm("%m", "true"));
  EXPECT_FALSE(norm("%m", "false"));
  EXPECT_FALSE(norm("None", "true"));
}

TEST(SideEffects, ASubgraphBringsItsOwn) {
  const auto cond = [](const std::string& line) {
    return line_has_side_effects(
        "%y: tensor = builtin::cond(%b, graph(%a: user tensor) { return %a }, graph(%a: user tensor) { " +
        line + " return %a }, [%x])");
  };
  EXPECT_FALSE(cond("%z: tensor = aten::relu(%a)"));
  EXPECT_TRUE(cond("%z: tensor = aten::relu_(%a)"));
}

}  // namespace
}  // namespace halftone
