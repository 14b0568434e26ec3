#include <fmt/format.h>
#include <gmock/gmock.h>

#include "graph/test_support.h"
#include "halftone/graph/graph.h"

// States that Graph's interface refuses to build, and that have no test here for that reason: two values of
// one name, a value with two producers, use lists that disagree with operands, more outputs than descriptions
// of them.
namespace halftone {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> lint_text(std::string_view text) {
  return lint(*parse_graph(text));
}

std::vector<std::string> lint_line(const std::string& line) {
  return lint_text("graph(%x: user \"x\" f32[2, 3], %n: user \"n\" int, %p: user \"p\" bool[]) {\n" + line +
                   "\nreturn %x\n}");
}

TEST(Lint, ASoundGraphHasNoFindings) {
  EXPECT_THAT(lint_line("%y: f32[2, 3] = aten::add.Tensor(%x, 1.5)"), IsEmpty());
  EXPECT_THAT(lint_line("%y: tensor = aten::full([%n, 2], %n, dtype=dtype:f32)"), IsEmpty());
  EXPECT_THAT(lint_line("%y: tensor = aten::max_pool2d(%x, 3, [2, 2])"), IsEmpty());
  EXPECT_THAT(lint_line("%y: tensor = aten::index.Tensor(%x, [None, %p])"), IsEmpty());
  EXPECT_THAT(lint_line("%y: tensor = aten::cat([%x, %x], -1)"), IsEmpty());
  EXPECT_THAT(lint_line("%y: tensor = aten::clamp(%x, None, 2)"), IsEmpty());
  EXPECT_THAT(lint_line("%y: tensor = aten::to.dtype(%x, dtype:f16)"), IsEmpty());
}

TEST(Lint, NamesOfManyBytes) {
  const std::string fits(4096, 'n'), many(50'000'000, 'n');
  const auto of = [](const std::string& input, const std::string& target, const std::string& value,
                     const std::string& layer, const std::string& type) {
    return lint_text(
        fmt::format("graph(%{}: user \"{}\" f32[2]) {{ %{}: f32[2] = aten::relu(%{}) @ \"{}\" "
                    "\"{}\" return %{} }}",
                    input, target, value, input, layer, type, value));
  };
  EXPECT_THAT(of("x", fits, fits, fits, fits), IsEmpty());
  const auto finding = [](const char* whose) {
    return fmt::format("the name of {} has 50000000 bytes, and 4096 are allowed: {}…", whose,
                       std::string(40, 'n'));
  };
  EXPECT_THAT(of(many, "x", "y", "l", "t"), ElementsAre(finding("an input")));
  EXPECT_THAT(of("x", many, "y", "l", "t"), ElementsAre(finding("an input's target")));
  EXPECT_THAT(of("x", "x", many, "l", "t"), ElementsAre(finding("a value")));
  EXPECT_THAT(of("x", "x", "y", many, "t"), ElementsAre(finding("a layer")));
  EXPECT_THAT(of("x", "x", "y", "l", many), ElementsAre(finding("a layer's type")));
}

TEST(Lint, UseBeforeDefinition) {
  const auto graph = parse_graph(R"(graph(%x: user "x" f32[2]) {
    %a: f32[2] = aten::relu(%x)
    %b: f32[2] = aten::sin(%a)
    return %b
  })");
  graph->move_before(graph->value("b")->producer(), graph->value("a")->producer());
  EXPECT_THAT(lint(*graph), ElementsAre("aten::sin (%b) uses %a before its definition"));
}

TEST(Lint, CycleAfterAReplacement) {
  const auto graph = parse_graph(R"(graph(%x: user "x" f32[2]) {
    %a: f32[2] = aten::relu(%x)
    %b: f32[2] = aten::sin(%a)
    %c: f32[2] = aten::cos(%x)
    return %b, %c
  })");
  graph->value("a")->producer()->replace_uses_of(graph->value("x"), graph->value("b"));
  EXPECT_THAT(lint(*graph),
              ElementsAre("aten::relu (%a) uses %b before its definition",
                          "a cycle, or nodes that depend on one: aten::relu (%a), aten::sin (%b)"));
}

TEST(Lint, ANodeThatUsesItself) {
  const auto graph = parse_graph("graph(%x: user \"x\" f32[2]) { %a: f32[2] = aten::relu(%x) return %a }");
  graph->value("a")->producer()->set_input(0, graph->value("a"));
  EXPECT_THAT(lint(*graph), ElementsAre(HasSubstr("uses %a before its definition"), HasSubstr("a cycle")));
}

TEST(Lint, ValuesOfAnotherGraph) {
  Graph other;
  Value* foreign = other.add_input({.name = "foreign"});
  Graph graph;
  graph.append("aten::relu", {{"self", foreign}}, {{.name = "y"}});
  graph.set_outputs({foreign}, {GraphOutput{}});
  EXPECT_THAT(lint(graph), ElementsAre("aten::relu (%y) uses %foreign of another graph",
                                       "return uses %foreign of another graph"));
  EXPECT_THAT(lint(other), ElementsAre("%foreign lists 2 uses, but 0 operands hold it"));
  graph.set_outputs({}, {});
  graph.erase(graph.nodes().front().get());  // before `other` goes away
}

TEST(Lint, OperandsThatTheSchemaDoesNotTake) {
  Graph graph;
  Value* x = graph.add_input({.name = "x"});
  graph.append("aten::relu", {{"self", x}, {"inplace", true}}, {{.name = "a"}});
  graph.append("aten::relu", {{"", x}}, {{.name = "b"}});
  graph.append("aten::relu", {{"self", x}, {"self", x}}, {{.name = "c"}});
  EXPECT_THAT(lint(graph), ElementsAre("aten::relu (%a) takes no operand \"inplace\"",
                                       "aten::relu (%b) has an operand without a name",
                                       "aten::relu (%b) lacks operand \"self\"",
                                       "aten::relu (%c) has operand \"self\" 2 times"));
}

TEST(Lint, MissingOperands) {
  Graph graph;
  Value* x = graph.add_input({.name = "x"});
  graph.append("aten::linear", {{"input", x}}, {{.name = "y"}});
  graph.append("sym::add", {{"", 1}}, {{.name = "n", .type = ValueType::kInt}});
  EXPECT_THAT(lint(graph), ElementsAre("aten::linear (%y) lacks operand \"weight\"",
                                       "sym::add (%n) takes 2 operands, not 1"));
}

TEST(Lint, OperandsOfTheWrongKind) {
  const auto only = [](const std::string& line) {
    const auto findings = lint_line(line);
    return findings.size() == 1 ? findings[0] : fmt::format("{} findings", findings.size());
  };
  EXPECT_EQ(only("%y: tensor = aten::relu(\"x\")"),
            "aten::relu (%y): operand \"self\" must be Tensor, not a string");
  EXPECT_THAT(only("%y: tensor = aten::relu(None)"), HasSubstr("must be Tensor, not None"));
  EXPECT_THAT(only("%y: tensor = aten::relu([%x])"), HasSubstr("must be Tensor, not such a list"));
  EXPECT_THAT(only("%y: tensor = aten::softmax.int(%x, 1.5)"), HasSubstr("\"dim\" must be int, not a float"));
  EXPECT_THAT(only("%y: tensor = aten::softmax.int(%x, %x)"),
              HasSubstr("\"dim\" must be int, not %x (tensor)"));
  EXPECT_THAT(only("%y: tensor = aten::cat([%x, \"a\"])"), HasSubstr("not such a list"));
  EXPECT_THAT(only("%y: tensor = aten::cat(%x)"), HasSubstr("\"tensors\" must be"));
  EXPECT_THAT(only("%y: tensor = aten::sum.dim_IntList(%x, [0], 1)"),
              HasSubstr("\"keepdim\" must be bool, not an integer"));
  EXPECT_THAT(only("%y: tensor = aten::to.dtype(%x, layout:strided)"), HasSubstr("not a layout"));
  EXPECT_THAT(only("%y: tensor = aten::to.dtype(%x, graph() { return })"), HasSubstr("not a subgraph"));
}

TEST(Lint, OutputsOfTheWrongNumberOrKind) {
  Graph graph;
  Value* x = graph.add_input({.name = "x"});
  graph.append("aten::relu", {{"self", x}}, {{.name = "a"}, {.name = "b"}});
  graph.append("aten::max.dim", {{"self", x}, {"dim", 0}}, {{.name = "c"}});
  graph.append("aten::sym_size.int", {{"self", x}, {"dim", 0}}, {{.name = "d"}});
  graph.append("aten::split.Tensor", {{"self", x}, {"split_size", 1}}, {{.name = "e"}});
  EXPECT_THAT(lint(graph), ElementsAre("aten::relu (%a) gives 1 outputs, not 2",
                                       "aten::max.dim (%c) gives 2 outputs, not 1",
                                       HasSubstr("output %d must be"), HasSubstr("output %e must be")));
}

TEST(Lint, MutationsNeedATargetThatIsThere) {
  EXPECT_THAT(
      lint_text(
          R"(graph(%b: buffer "b" f32[2], %w: parameter "w" f32[2], %x: user "x" f32[2], %n: user "n" int) {
    return buffer_mutation "" %x, buffer_mutation "c" %x, buffer_mutation "w" %x, input_mutation "b" %x,
           buffer_mutation "b" %x, buffer_mutation "b" %x, input_mutation "x" %n, input_mutation "x" 3
  })"),
      ElementsAre("output 0 (buffer_mutation) has no target",
                  "output 1 (buffer_mutation) has the target \"c\", which is no buffer of the graph",
                  "output 2 (buffer_mutation) has the target \"w\", which is no buffer of the graph",
                  "output 3 (input_mutation) has the target \"b\", which is no user input of the graph",
                  "output 5 (buffer_mutation) has the target \"b\" of another output",
                  "output 6 (input_mutation) is no tensor", "output 7 (input_mutation) is no tensor",
                  "output 7 (input_mutation) has the target \"x\" of another output"));
}

TEST(Lint, DuplicateAndMissingInputTargets) {
  const auto graph = parse_graph(
      "graph(%a: parameter \"w\" f32[2], %b: buffer \"w\" f32[2], %c: user \"w\" f32[2], %d: user \"w\" int) "
      "{ return }");
  graph->set_input_target(2, InputKind::kUser, "");
  EXPECT_THAT(lint(*graph), ElementsAre("input %b (buffer) has the target \"w\" of another input",
                                        "input %c (user) has no target"));
}

TEST(Lint, MetadataThatContradictsItself) {
  Graph graph;
  graph.add_input({.name = "a", .type = ValueType::kInt, .meta = TensorMeta{}});
  graph.add_input({.name = "b", .meta = TensorMeta{.sizes = {2, 3}, .strides = {1}}});
  graph.add_input({.name = "c", .meta = TensorMeta{.sizes = {-2}}});
  graph.add_input({.name = "d", .expression = SymExpr(1)});
  EXPECT_THAT(lint(graph),
              ElementsAre("%a is no tensor (int) but has tensor metadata", "%b has 2 sizes but 1 strides",
                          "%c has the negative size -2", "%d is no number (tensor) but has an expression"));
}

TEST(Lint, BrokenSubgraphs) {
  const auto graph = parse_graph(R"(graph(%p: user "p" bool[], %x: user "x" f32[2]) {
    %y: f32[2] = builtin::cond(%p, graph(%a: user "a" f32[2]) {
      %s: f32[2] = aten::relu("a")
      return %s
    }, graph(%w: parameter "w" f32[2]) { return %w }, [%x])
    return %y
  })");
  EXPECT_THAT(
      lint(*graph),
      ElementsAre(
          "builtin::cond (%y) subgraph 1: aten::relu (%s): operand \"self\" must be Tensor, not a string",
          "builtin::cond (%y) subgraph 2: input %w is a parameter, but subgraphs get operands only"));
}

TEST(Lint, SubgraphsThatDoNotFitTheirOperands) {
  EXPECT_THAT(lint_line("%y: tensor = builtin::cond(%p, graph() { return 1 }, graph(%a: user tensor) { "
                        "return %a, %a }, [%x])"),
              ElementsAre("builtin::cond (%y) subgraph 1 takes 0 inputs but gets 1 operands",
                          "builtin::cond (%y) subgraph 2 gives 2 outputs, not 1"));
  EXPECT_THAT(lint_line("%y: tensor = builtin::cond(%p, %x, None, %x)"),
              ElementsAre("builtin::cond (%y) needs a list as operand 3, not %x (tensor)",
                          "builtin::cond (%y) needs a subgraph as operand 1, not %x (tensor)",
                          "builtin::cond (%y) needs a subgraph as operand 2, not None"));
  EXPECT_THAT(lint_line("%y: tensor = builtin::while_loop(graph(%a: user tensor) { return %a, %a }, "
                        "graph(%a: user tensor, %b: user tensor) { return %a }, [%x, %x], [])"),
              ElementsAre("builtin::while_loop (%y) subgraph 0 takes 1 inputs but gets 2 operands",
                          "builtin::while_loop (%y) subgraph 0 gives 2 outputs, not 1",
                          "builtin::while_loop (%y) subgraph 1 gives 1 outputs, not 2",
                          "builtin::while_loop (%y) carries 2 values but gives 1"));
  EXPECT_THAT(lint_line("%y: tensor = builtin::map(graph(%a: user tensor) { return %a, %a }, [], [%x])"),
              ElementsAre("builtin::map (%y) maps over nothing",
                          "builtin::map (%y) subgraph 0 gives 2 outputs, not 1"));
  EXPECT_THAT(
      lint_line("%y: tensor = builtin::scan(graph(%a: user tensor) { return %a }, [%x, %x], [%x], [])"),
      ElementsAre("builtin::scan (%y) subgraph 0 takes 1 inputs but gets 3 operands",
                  "builtin::scan (%y) subgraph 0 gives 1 outputs but 2 values are carried"));
  EXPECT_THAT(lint_line("%y: tensor = builtin::getitem(graph() { return }, 0)"),
              ElementsAre("builtin::getitem (%y) takes no subgraph"));
}

TEST(Lint, AGraphThatHoldsItself) {
  const auto graph = std::make_shared<Graph>();
  Value* x = graph->add_input({.name = "x"});
  Node* node = graph->append("builtin::map", {{"", graph}, {"", Argument::List{x}}, {"", Argument::List{}}},
                             {{.name = "y"}});
  graph->set_outputs({node->output()}, {GraphOutput{}});
  EXPECT_THAT(lint(*graph), ElementsAre("builtin::map (%y) subgraph 0 holds itself"));
  node->set_input(0, Argument());  // or the two would keep each other alive
}

TEST(Lint, OrThrowGivesAllFindings) {
  const auto graph = parse_graph(
      "graph(%x: user \"x\" int) { %y: tensor = aten::relu(\"a\") %z: tensor = aten::sin(None) return %y }");
  EXPECT_EQ(message_of(ErrorCode::kInvalidArgument, [&] { lint_or_throw(*graph, "after fuse"); }),
            "after fuse: aten::relu (%y): operand \"self\" must be Tensor, not a string; "
            "aten::sin (%z): operand \"self\" must be Tensor, not None");
  EXPECT_NO_THROW(lint_or_throw(*parse_graph("graph() { return }"), "x"));
}

}  // namespace
}  // namespace halftone
