#include "halftone/graph/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/test_support.h"

namespace halftone {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kTwoSteps = R"(
graph(%x: user "x" f32[2, 3]) {
  %a: f32[2, 3] = aten::relu(%x)
  %b: f32[2, 3] = aten::add.Tensor(%a, %a)
  return %b
})";

TEST(Graph, KeepsOneUseForEachOperand) {
  const auto graph = parse_graph(kTwoSteps);
  Value* a = graph->value("a");
  ASSERT_EQ(a->users().size(), 2u);
  EXPECT_EQ(a->users()[0], graph->value("b")->producer());
  EXPECT_THAT(graph->value("b")->users(), ElementsAre(&graph->return_node()));
}

TEST(Graph, ReplacingAllUsesReachesNestedOperandsAndOutputs) {
  const auto graph = parse_graph(R"(
graph(%x: user "x" f32[2], %y: user "y" f32[2]) {
  %c: f32[4] = aten::cat([%x, %x])
  return %c, %x
})");
  graph->replace_all_uses(graph->value("x"), graph->value("y"));
  EXPECT_TRUE(graph->value("x")->users().empty());
  EXPECT_EQ(graph->value("y")->users().size(), 3u);
  EXPECT_EQ(graph->output_value(1).value(), graph->value("y"));
}

TEST(Graph, RefusesToEraseWhatIsUsed) {
  const auto graph = parse_graph(kTwoSteps);
  EXPECT_THAT(message_of(ErrorCode::kState, [&] { graph->erase(graph->value("a")->producer()); }),
              HasSubstr("%a still has 2 uses"));
  EXPECT_THAT(message_of(ErrorCode::kState, [&] { graph->erase_input(0); }), HasSubstr("%x"));
}

TEST(Graph, InsertsBeforeAGivenNodeAndMakesNamesUnique) {
  const auto graph = parse_graph(kTwoSteps);
  Node* add = graph->value("b")->producer();
  Node* node = graph->insert(add, "aten::neg", {{"self", graph->value("a")}}, {{"a"}});
  EXPECT_EQ(node->output()->name(), "a_1");
  EXPECT_EQ(std::next(graph->nodes().begin())->get(), node);
  EXPECT_EQ(graph->append("aten::neg", {{"self", graph->value("a")}}, {{}})->output()->name(), "v0");
}

TEST(Graph, RefusesUnknownOperators) {
  const auto graph = parse_graph(kTwoSteps);
  EXPECT_THAT(message_of(ErrorCode::kUnsupported, [&] { graph->append("aten::no_such_thing", {}, {{}}); }),
              HasSubstr("aten::no_such_thing"));
}

TEST(Graph, EraseDeadNodesTakesWholeChainsButKeepsSideEffects) {
  const auto graph = parse_graph(R"(
graph(%x: user "x" f32[2], %n: buffer "n" f32[2]) {
  %a: f32[2] = aten::relu(%x)
  %b: f32[2] = aten::neg(%a)
  %c: f32[2] = aten::add_.Tensor(%n, 1)
  return %x
})");
  EXPECT_EQ(graph->erase_dead_nodes(), 2u);
  ASSERT_EQ(graph->nodes().size(), 1u);
  EXPECT_EQ(graph->nodes().front()->target(), "aten::add_.Tensor");
}

TEST(Graph, SortsTopologicallyAndFindsCycles) {
  const auto graph = parse_graph(kTwoSteps);
  Node* relu = graph->value("a")->producer();
  Node* add = graph->value("b")->producer();
  graph->move_before(add, relu);
  EXPECT_FALSE(lint(*graph).empty());
  graph->sort_topologically();
  EXPECT_TRUE(lint(*graph).empty());
  relu->set_input(0, graph->value("b"));
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { graph->sort_topologically(); }),
              HasSubstr("cycle"));
  EXPECT_EQ(graph->nodes().size(), 2u);
}

TEST(Graph, CloneIsEqualAndIndependent) {
  const auto graph = parse_graph(R"(
graph(%p: user "p" bool[], %x: user "x" f32[2]) {
  %y: f32[2] = builtin::cond(%p, graph(%u: user "u" f32[2]) {
      %v: f32[2] = aten::relu(%u)
      return %v
    }, graph(%u: user "u" f32[2]) {
      return %u
    }, [%x])
  return %y
})");
  const auto copy = graph->clone();
  EXPECT_EQ(print_graph(*copy), print_graph(*graph));
  copy->set_outputs({Argument(3)}, {GraphOutput{}});
  EXPECT_EQ(graph->output_value(0).value(), graph->value("y"));
  EXPECT_EQ(copy->erase_dead_nodes(), 1u);
  EXPECT_EQ(graph->nodes().size(), 1u);
}

TEST(Graph, RenamesUnlessTheNameIsTaken) {
  const auto graph = parse_graph(kTwoSteps);
  graph->rename(graph->value("a"), "hidden");
  EXPECT_EQ(graph->try_value("a"), nullptr);
  EXPECT_EQ(graph->value("hidden")->users().size(), 2u);
  EXPECT_THROW(graph->rename(graph->value("hidden"), "b"), Error);
}

TEST(Graph, SeveralInputsAreErasedAtOnce) {
  const auto graph = parse_graph(R"(
graph(%a: user "a" f32[2], %b: user "b" f32[2], %c: user "c" f32[2], %d: user "d" f32[2]) {
  return %c
})");
  EXPECT_THAT(message_of(ErrorCode::kState, [&] { graph->erase_inputs({0, 2}); }), HasSubstr("input %c"));
  EXPECT_EQ(graph->inputs().size(), 4u);
  message_of(ErrorCode::kInvalidArgument, [&] { graph->erase_inputs({1, 0}); });
  graph->erase_inputs({0, 1, 3});
  ASSERT_EQ(graph->inputs().size(), 1u);
  EXPECT_EQ(graph->inputs()[0].target, "c");
  EXPECT_EQ(graph->value("c")->index(), 0u);
  EXPECT_EQ(graph->try_value("a"), nullptr);
  graph->erase_inputs({});
  EXPECT_TRUE(lint(*graph).empty());
}

}  // namespace
}  // namespace halftone
