// edit.h, layout.h and stored_tensors.h.
#include "graph/rewrite/edit.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/rewrite/layout.h"
#include "graph/rewrite/stored_tensors.h"
#include "graph/test_support.h"

namespace halftone {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kSum = R"(
graph(%x: user "x" f32[2, 3]) {
  %a: f32[2, 3] = aten::relu(%x)  @ "act" "ReLU"
  %b: f32[2, 3] = aten::add.Tensor(%a, %a)
  return %b
})";

TEST(Edit, AReplacedValueKeepsNameMetadataAndUses) {
  const auto graph = parse_graph(kSum);
  Node* old_node = graph->value("a")->producer();
  replace_value(graph->value("a"), old_node, "aten::silu", {{"self", graph->value("x")}}, {},
                old_node->source());
  EXPECT_EQ(print_graph(*graph), R"(graph(%x: user "x" f32[2, 3]) {
  %a: f32[2, 3] = aten::silu(%x)  @ "act" "ReLU"
  %a_replaced: f32[2, 3] = aten::relu(%x)  @ "act" "ReLU"
  %b: f32[2, 3] = aten::add.Tensor(%a, %a)
  return %b
}
)");
}

TEST(Edit, InsertForGivesMetadataOfItsOwn) {
  const auto graph = parse_graph(kSum);
  Node* old_node = graph->value("a")->producer();
  const Node* node = insert_for(graph->value("a"), old_node, "aten::silu", {{"self", graph->value("x")}},
                                contiguous_meta(at::kHalf, {2, 3}), {});
  EXPECT_EQ(node->output()->name(), "a");
  EXPECT_EQ(node->output()->meta()->dtype, at::kHalf);
  EXPECT_EQ(node->output()->users().size(), 2U);
  graph->erase(old_node);
  EXPECT_TRUE(lint(*graph).empty());
}

TEST(Edit, AnOperandThatWasNotGivenGetsItsPlace) {
  const auto graph = parse_graph(R"(
graph(%x: user "x" f32[1, 3], %w: user "w" f32[2, 3], %b: user "b" f32[2]) {
  %y: f32[1, 2] = aten::linear(%x, %w)
  return %y
})");
  Node* linear = graph->value("y")->producer();
  set_operand(*linear, "bias", graph->value("b"));
  EXPECT_THAT(linear->input_values(), ElementsAre(graph->value("x"), graph->value("w"), graph->value("b")));
  set_operand(*linear, "bias", Argument());
  EXPECT_TRUE(operand(*linear, "bias").is_none());
  EXPECT_TRUE(graph->value("b")->users().empty());
  EXPECT_THAT(message_of(ErrorCode::kInternal, [&] { set_operand(*linear, "biass", 1); }),
              HasSubstr("aten::linear has no operand \"biass\""));
}

TEST(Edit, OperandsAreInsertedBeforeLaterOnes) {
  const auto graph = parse_graph(R"(
graph(%x: user "x" f32[2, 4], %w: user "w" f32[4]) {
  %y: f32[2, 4] = aten::layer_norm(%x, [4], eps=1e-06)
  return %y
})");
  Node* norm = graph->value("y")->producer();
  set_operand(*norm, "weight", graph->value("w"));
  std::vector<std::string> names;
  for (const NamedArgument& input : norm->inputs()) names.push_back(input.name);
  EXPECT_THAT(names, ElementsAre("input", "normalized_shape", "weight", "eps"));
}

TEST(Layout, StridesOfBothLayouts) {
  const auto numbers = [](const std::vector<SymExpr>& strides) {
    std::vector<int64_t> result;
    for (const SymExpr& stride : strides) result.push_back(stride.constant());
    return result;
  };
  EXPECT_THAT(numbers(contiguous_meta(at::kFloat, {2, 3, 4, 5}).strides), ElementsAre(60, 20, 5, 1));
  EXPECT_THAT(numbers(channels_last_meta(at::kFloat, {2, 3, 4, 5}).strides), ElementsAre(60, 1, 15, 3));
  EXPECT_THAT(numbers(channels_last_meta(at::kFloat, {2, 3, 4}).strides), ElementsAre(12, 1, 3));
  EXPECT_THAT(numbers(channels_last_strides({2, 3})), ElementsAre(3, 1));
  TensorMeta meta;
  meta.sizes = {2, 3};
  EXPECT_THAT(numbers(with_contiguous_strides(meta)->strides), ElementsAre(3, 1));
  EXPECT_FALSE(with_contiguous_strides(std::nullopt).has_value());
  const int64_t huge = int64_t{1} << 40;
  EXPECT_TRUE(contiguous_strides_or_none({2, huge, huge}).empty());
  EXPECT_TRUE(channels_last_strides({2, huge, huge}).empty());
}

TEST(StoredTensors, AreInputsWithTheTensorsForm) {
  Graph graph;
  const at::Tensor tensor = at::zeros({2, 3}, at::kHalf).t();
  const Value* value = add_stored_input(graph, value_name_for("p_", "fc.weight:scale"), InputKind::kParameter,
                                        "fc.weight:scale", tensor);
  EXPECT_EQ(value->name(), "p_fc_weight_scale");
  EXPECT_EQ(graph.inputs()[0].target, "fc.weight:scale");
  EXPECT_EQ(value->meta()->dtype, at::kHalf);
  EXPECT_EQ(value->meta()->sizes, (std::vector<SymExpr>{3, 2}));
  EXPECT_EQ(value->meta()->strides, (std::vector<SymExpr>{1, 3}));
  EXPECT_EQ(rank(value), 2U);
}

}  // namespace
}  // namespace halftone
