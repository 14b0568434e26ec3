#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "halftone/graph/graph.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Dot, DrawsNodesAndEdges) {
  const auto graph = parse_graph(R"(graph(%w: parameter "fc.weight" f32[4, 3], %x: user "x" f32[s0, 3]) {
  %y: f32[s0, 4] = aten::linear(%x, %w)  @ "fc" "Linear"
  return %y
}
)");
  EXPECT_EQ(print_dot(*graph), R"(digraph halftone {
  node [shape=box, fontname="Helvetica", fontsize=10];
  edge [fontsize=8];
  n0 [label="parameter fc.weight\n%w: f32[4, 3]", shape=ellipse, style=filled, fillcolor=lightgrey];
  n1 [label="user x\n%x: f32[s0, 3]", shape=ellipse];
  n2 [label="aten::linear\nfc"];
  n3 [label="return", shape=ellipse];
  n1 -> n2 [label="%x: f32[s0, 3]"];
  n0 -> n2 [label="%w: f32[4, 3]"];
  n2 -> n3 [label="%y: f32[s0, 4]"];
}
)");
}

TEST(Dot, EscapesLabels) {
  Graph graph;
  graph.add_input({.name = "x"}, InputKind::kUser, "a \"b\" \\ \x01 c");
  const std::string dot = print_dot(graph);
  EXPECT_THAT(dot, HasSubstr(R"(label="user a \"b\" \\   c\n%x: tensor")"));
  EXPECT_THAT(dot, Not(HasSubstr("\x01")));
}

TEST(Dot, SubgraphsAreClusters) {
  const std::string dot =
      print_dot(*parse_graph("graph(%p: user tensor) { %y: tensor = builtin::cond(%p, graph() { return 1 }, "
                             "graph() { return 2 }, []) return %y }"));
  EXPECT_THAT(dot, HasSubstr("n1 [label=\"builtin::cond\", style=rounded];"));
  EXPECT_THAT(dot, HasSubstr("  subgraph cluster_2 {\n    style=dashed;\n    n3 [label=\"return\", "
                             "shape=ellipse];\n  }\n  n3 -> n1 [style=dashed];\n"));
  EXPECT_THAT(dot, HasSubstr("subgraph cluster_4 {"));
}

}  // namespace
}  // namespace halftone
