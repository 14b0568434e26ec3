#include <gmock/gmock.h>

#include <chrono>
#include <cmath>
#include <random>

#include "graph/ir/text_names.h"
#include "graph/test_support.h"
#include "halftone/graph/graph.h"

namespace halftone {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string parse_error(std::string_view text, ErrorCode code = ErrorCode::kInvalidArgument) {
  return message_of(code, [&] { (void)parse_graph(text); });
}

// The text of a graph with one node line, for constants and types.
std::string around(const std::string& line) {
  return "graph(%x: user \"x\" f32[2, 3]) {\n  " + line + "\n  return %x\n}\n";
}

TEST(GraphText, PrintsWhatItRead) {
  const std::string text =
      R"(graph(%p_w: parameter "fc.weight" f32[4, 3] grad, %count: buffer "count" i64[], %mask: non_persistent_buffer "mask" bool[3; ?], %k: constant "lifted" f64[2, 3; 1, 2], %x: user "x" f32[s0, 3], %n: user "n" int(s1)) {
  %linear: f32[s0, 4] = aten::linear(%x, %p_w, None)  @ "fc" "torch.nn.modules.linear.Linear"
  %size: int(s0) = aten::sym_size.int(%x, 0)  @ "fc"
  %twice: int(2*s0) = sym::mul(%size, 2)
  %parts: list = aten::split.Tensor(%linear, 2, 1)
  %a: f32[s0, 2; 4, 1], %b: f32[s0, 2; 4, 1] = builtin::unpack(%parts)
  %next: i64[] = aten::add.Tensor(%count, 1)
  aten::_assert_scalar(%size, "size\tis \"odd\"\n")
  %full: tensor = aten::full([%twice, 2], -1.5, dtype=dtype:f64, layout=layout:strided, device=device:cpu, pin_memory=false)
  %c: f32[s0, 2; ?] = aten::clone(%a, memory_format=format:channels_last)
  return %a, buffer_mutation "count" %next, None, 3, [%b, true], input_mutation "x" %c
}
)";
  const auto graph = parse_graph(text);
  EXPECT_EQ(print_graph(*graph), text);
  EXPECT_EQ(print_graph(*graph->clone()), text);
  EXPECT_EQ(lint(*graph), std::vector<std::string>{});
}

TEST(GraphText, FixedInputsKeepTheirConstants) {
  const std::string text =
      "graph(%k: user \"k\" int = 3, %n: user \"n\" none = None, %s: user \"s\" str = \"mean\") {\n  return "
      "%k\n}\n";
  const auto graph = parse_graph(text);
  EXPECT_EQ(graph->inputs()[0].fixed, Argument(3));
  EXPECT_EQ(graph->inputs()[1].fixed, Argument());
  EXPECT_EQ(print_graph(*graph), text);
  EXPECT_EQ(print_graph(*graph->clone()), text);
  EXPECT_THROW(parse_graph("graph(%a: user int, %b: user int = %a) { return }"), Error);
}

TEST(GraphText, SubgraphsNest) {
  const std::string text = R"(graph(%p: user "p" bool[], %x: user "x" f32[2]) {
  %y: f32[2] = builtin::cond(%p, graph(%a: user "a" f32[2]) {
    %s: f32[2] = aten::sin(%a)
    %z: f32[2] = builtin::map(graph(%e: user "e" f32[]) {
      return %e
    }, [%s], [])
    return %z
  }, graph(%a: user "a" f32[2]) {
    return %a
  }, [%x])  @ "branch"
  return %y
}
)";
  const auto graph = parse_graph(text);
  EXPECT_EQ(print_graph(*graph), text);
  EXPECT_EQ(lint(*graph), std::vector<std::string>{});
}

TEST(GraphText, FillsInTheNamesOfTheSchema) {
  const auto graph = parse_graph(around("%y: f32[2, 3] = aten::add.Tensor(%x, %x, alpha=2)"));
  const Node& node = *graph->nodes().front();
  ASSERT_EQ(node.inputs().size(), 3U);
  EXPECT_EQ(node.inputs()[0].name, "self");
  EXPECT_EQ(node.inputs()[1].name, "other");
  EXPECT_EQ(node.inputs()[2].name, "alpha");
  EXPECT_EQ(node.input(2).as_int(), 2);
  EXPECT_EQ(graph->value("x")->users().size(), 3U);  // the return node is the third
}

TEST(GraphText, NamedOperandsMayComeInAnyOrder) {
  const auto graph = parse_graph(around("%y: tensor = aten::mean.dim(dim=[0], self=%x)"));
  EXPECT_THAT(print_graph(*graph), HasSubstr("aten::mean.dim(dim=[0], self=%x)"));
}

TEST(GraphText, MissingStridesMeanContiguousOnes) {
  const auto strides = [](const char* type) {
    const auto graph = parse_graph(std::string("graph(%x: user \"x\" ") + type + ") { return %x }");
    std::vector<std::string> text;
    for (const SymExpr& stride : graph->value("x")->meta()->strides) text.push_back(stride.to_string());
    return text;
  };
  using Text = std::vector<std::string>;
  EXPECT_EQ(strides("f32[2, 3, 4]"), (Text{"12", "4", "1"}));
  EXPECT_EQ(strides("f32[s1, s0, 4, s1]"), (Text{"4*s0*s1", "4*s1", "s1", "1"}));
  EXPECT_EQ(strides("f32[2, 3*s0, 5]"), (Text{"15*s0", "5", "1"}));
  EXPECT_EQ(strides("f32[2, 0, 5]"), (Text{"5", "5", "1"}));
  EXPECT_EQ(strides("f32[2; ?]"), Text{});
  EXPECT_THAT(parse_error("graph(%x: user f32[1, 9223372036854775807, 2]) { return }"),
              HasSubstr("too large"));
}

TEST(GraphText, DoublesKeepTheirBits) {
  std::mt19937_64 random(7);
  std::vector<double> values = {0.0,       -0.0, 1.0,         1e300, 5e-324, INFINITY,
                                -INFINITY, 0.1,  123456789.0, 1e16,  -1e-7};
  while (values.size() < 3000) {
    const double value = std::bit_cast<double>(random());
    if (!std::isnan(value)) values.push_back(value);
  }
  for (const double value : values) {
    std::string literal;
    append_double(literal, value);
    const auto graph = parse_graph(around("%y: tensor = aten::mul.Scalar(%x, " + literal + ")"));
    const double* read = graph->nodes().front()->input(1).get_if<double>();
    ASSERT_NE(read, nullptr) << literal;
    EXPECT_EQ(std::bit_cast<uint64_t>(*read), std::bit_cast<uint64_t>(value)) << literal;
  }
  const auto graph = parse_graph(around("%y: tensor = aten::mul.Scalar(%x, nan)"));
  EXPECT_TRUE(std::isnan(*graph->nodes().front()->input(1).get_if<double>()));
}

TEST(GraphText, EveryConstantReadsBackAsItself) {
  for (const Argument& constant :
       {Argument(true), Argument(int64_t{std::numeric_limits<int64_t>::min()}),
        Argument(c10::complex<double>(-1.5, INFINITY)), Argument(std::string("a\0b\x7f\xff\"\\é", 9)),
        Argument(c10::ScalarType::QInt8), Argument(c10::ScalarType::Float8_e4m3fn),
        Argument(c10::Layout::SparseCsr), Argument(c10::MemoryFormat::ChannelsLast3d),
        Argument(c10::Device("cuda:1")), Argument(), Argument(Argument::List{1, 2.0, "x"})}) {
    Graph graph;
    graph.set_outputs({constant}, {GraphOutput{}});
    const std::string text = print_graph(graph);
    EXPECT_EQ(parse_graph(text)->output_value(0), constant) << text;
  }
}

TEST(GraphText, EveryDtypeReadsBackAsItself) {
  for (int8_t i = 0; i < static_cast<int8_t>(c10::ScalarType::NumOptions); ++i) {
    const auto dtype = static_cast<c10::ScalarType>(i);
    if (dtype == c10::ScalarType::Undefined) continue;
    EXPECT_EQ(try_dtype(dtype_name(dtype)), dtype) << dtype_name(dtype);
  }
}

TEST(GraphText, OddNamesAreQuoted) {
  Graph graph;
  Value* value = graph.add_input({.name = "a b\"%"}, InputKind::kUser, "the \\ \n one");
  graph.set_outputs({value}, {GraphOutput{}});
  const std::string text = print_graph(graph);
  EXPECT_THAT(text, HasSubstr("%\"a b\\\"%\": user \"the \\\\ \\n one\" tensor"));
  EXPECT_EQ(print_graph(*parse_graph(text)), text);
}

TEST(GraphText, CommentsAndSpacesDoNotMatter) {
  const auto graph = parse_graph("# first\ngraph ( ) { # none\n return # nothing\n 1 , 2 } # last");
  EXPECT_EQ(print_graph(*graph), "graph() {\n  return 1, 2\n}\n");
}

TEST(GraphText, ErrorsNameLineAndColumn) {
  EXPECT_THAT(parse_error(""), HasSubstr("line 1, column 1: expected \"graph\", found the end"));
  EXPECT_THAT(parse_error("grapf() {}"), HasSubstr("line 1, column 1: expected \"graph\", found \"grapf\""));
  EXPECT_THAT(parse_error("graph() { return } x"), HasSubstr("line 1, column 20: expected the end"));
  EXPECT_THAT(parse_error("graph() { }"), HasSubstr("expected a node or \"return\""));
  EXPECT_THAT(parse_error("graph() {\n"),
              HasSubstr("line 2, column 1: expected a node or \"return\", found the end"));
  EXPECT_THAT(parse_error(around("%y: f32[2] = aten::relu(%z)")),
              HasSubstr("line 2, column 27: %z is not defined"));
  EXPECT_THAT(parse_error(around("%x: f32[2] = aten::relu(%x)")),
              HasSubstr("line 2, column 3: %x is defined twice"));
  EXPECT_THAT(parse_error(around("%y: int, %y: int = builtin::unpack(%x)")),
              HasSubstr("%y is defined twice"));
  EXPECT_THAT(parse_error("graph(%x: user int, %x: user int) { return }"),
              HasSubstr("column 21: %x is defined twice"));
  EXPECT_THAT(parse_error("graph(%x: weight f32[2]) { return }"), HasSubstr("an input is user, parameter"));
  EXPECT_THAT(parse_error(around("%y: f33[2] = aten::relu(%x)")), HasSubstr("unknown dtype f33"));
  EXPECT_THAT(parse_error(around("%y: thing = aten::relu(%x)")), HasSubstr("unknown type thing"));
  EXPECT_THAT(parse_error(around("%y: f32[2; 1, 1] = aten::relu(%x)")), HasSubstr("1 sizes but 2 strides"));
  EXPECT_THAT(parse_error(around("%y: f32[2*] = aten::relu(%x)")),
              HasSubstr("line 2, column 13: expected an expression"));
  EXPECT_THAT(parse_error(around("%y: f32[2] device:abacus = aten::relu(%x)")),
              HasSubstr("unknown device abacus"));
  EXPECT_THAT(parse_error(around("%y: int(s0 = aten::relu(%x)")), HasSubstr("expected ')'"));
}

TEST(GraphText, BrokenConstantsAreErrors) {
  const auto error = [](const std::string& constant) {
    return parse_error(around("%y: tensor = aten::mul.Scalar(%x, " + constant + ")"));
  };
  EXPECT_THAT(error("9223372036854775808"), HasSubstr("64 bits"));
  EXPECT_THAT(error("1e999"), HasSubstr("double"));
  EXPECT_THAT(error("-"), HasSubstr("expected a number"));
  EXPECT_THAT(error("1x"), HasSubstr("expected ')'"));
  EXPECT_THAT(error("\"abc"), HasSubstr("closing quote"));
  EXPECT_THAT(error("\"\\q\""), HasSubstr("unknown escape"));
  EXPECT_THAT(error("\"\\xg0\""), HasSubstr("hexadecimal"));
  EXPECT_THAT(error("dtype:f33"), HasSubstr("unknown operand dtype:f33"));
  EXPECT_THAT(error("layout:round"), HasSubstr("unknown operand"));
  EXPECT_THAT(error("yes"), HasSubstr("unknown operand yes"));
  EXPECT_THAT(error("[1, 2"), HasSubstr("expected ']'"));
  EXPECT_THAT(error("complex(1.0)"), HasSubstr("expected ','"));
  EXPECT_THAT(error("%"), HasSubstr("a value needs a name"));
}

TEST(GraphText, ArityIsCheckedAgainstTheSchema) {
  const auto error = [](const std::string& line) { return parse_error(around(line)); };
  EXPECT_THAT(error("%y: tensor = aten::relu()"),
              HasSubstr("line 2, column 16: aten::relu lacks operand \"self\""));
  EXPECT_THAT(error("%y: tensor = aten::relu(%x, %x)"), HasSubstr("too many operands: aten::relu takes 1"));
  EXPECT_THAT(error("%y: tensor = aten::relu(input=%x)"), HasSubstr("takes no operand \"input\""));
  EXPECT_THAT(error("%y: tensor = aten::relu(%x, self=%x)"), HasSubstr("has operand \"self\" 2 times"));
  EXPECT_THAT(error("%y: tensor = aten::add.Tensor(self=%x, %x)"),
              HasSubstr("positional operand after a named one"));
  EXPECT_THAT(error("%y: tensor = aten::add.Tensor(%x, %x, 2)"),
              HasSubstr("operand \"alpha\" must be named"));
  EXPECT_THAT(error("%y: tensor, %z: tensor = aten::relu(%x)"), HasSubstr("gives 1 outputs, not 2"));
  EXPECT_THAT(error("aten::relu(%x)"), HasSubstr("gives 1 outputs, not 0"));
  EXPECT_THAT(error("%y: int = sym::add(1)"), HasSubstr("sym::add takes 2 operands, not 1"));
  EXPECT_THAT(error("%y: int = sym::add(1, b=2)"), HasSubstr("takes no operand by name"));
  EXPECT_THAT(error("%y: int = sym::round(1, 2, 3)"), HasSubstr("takes 1 to 2 operands"));
}

TEST(GraphText, UnknownOperatorsAreListedAllAtOnce) {
  const std::string text = R"(graph(%x: user "x" f32[2]) {
  %a: f32[2] = mylib::first(%x)
  %b: f32[2] = aten::relu(%a)
  %c: f32[2], %d: int = aten::no_such(%b, 1, flag=true)
  %e: f32[2] = builtin::cond(%c, graph(%y: user f32[2]) {
    %z: f32[2] = aten::add.(%y, %y)
    return %z
  }, 1, [])
  return %e, %d
}
)";
  EXPECT_EQ(
      parse_error(text, ErrorCode::kUnsupported),
      "the graph has unknown operators: line 2: mylib::first; line 4: aten::no_such; line 6: aten::add.");
}

TEST(GraphText, ALongListOfUnknownOperatorsIsCut) {
  std::string text = "graph() {\n";
  for (int i = 0; i < 60; ++i) text += "no::op()\n";
  EXPECT_THAT(parse_error(text + "return }", ErrorCode::kUnsupported),
              AllOf(HasSubstr("line 51: no::op"), HasSubstr("and 10 more")));
}

TEST(GraphText, DeepNestingIsAnErrorAndNoCrash) {
  std::string lists = "graph() { return ";
  std::string graphs = "graph() { return ";
  std::string sizes = "graph(%x: user f32[";
  for (int i = 0; i < 100000; ++i) {
    lists += '[';
    graphs += "graph() { return ";
    sizes += '(';
  }
  EXPECT_THAT(parse_error(lists), HasSubstr("nested deeper than 64"));
  EXPECT_THAT(parse_error(graphs), HasSubstr("nested deeper than 64"));
  EXPECT_THAT(parse_error(sizes), HasSubstr("deeper"));
  std::string rank = "graph(%x: user f32[s0";
  for (int i = 0; i < 100000; ++i) rank += ", s0";
  EXPECT_THAT(parse_error(rank + "]) { return }"), HasSubstr("more than 64 dimensions"));
}

// Every prefix, and every text with one byte changed, gives a graph or an Error, never anything else.
TEST(GraphText, DamagedTextGivesTypedErrors) {
  const std::string text = R"(graph(%w: parameter "w" f32[4, 3] grad, %x: user "x" f32[s0, 3; 3, 1]) {
  %y: f32[s0, 4] = aten::linear(%x, %w, bias=None)  @ "fc" "Linear\x41"
  %z: tensor = aten::full([2, 2], -1.5e3, dtype=dtype:f64)  # comment
  %c: tensor = builtin::cond(true, graph(%a: user "a" tensor) { return %a }, graph(%a: user "a" tensor) { return complex(1.0, inf) }, [%y])
  return %c, buffer_mutation "w" %z, [None, 3]
}
)";
  const auto try_parse = [](const std::string& damaged) {
    try {
      (void)print_graph(*parse_graph(damaged));
      return true;
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ErrorCode::kInvalidArgument || error.code() == ErrorCode::kUnsupported)
          << error.what();
      return false;
    }
  };
  size_t errors = 0;
  for (size_t i = 0; i + 2 < text.size(); ++i) errors += !try_parse(text.substr(0, i));
  EXPECT_EQ(errors, text.size() - 2);
  std::mt19937 random(3);
  for (int round = 0; round < 5000; ++round) {
    std::string damaged = text;
    for (int k = 0; k < 1 + round % 3; ++k) {
      damaged[random() % damaged.size()] =
          static_cast<char>(random() % 8 == 0 ? random() % 256 : text[random() % text.size()]);
    }
    errors += !try_parse(damaged);
  }
  EXPECT_GT(errors, text.size() + 1000);
}

TEST(GraphText, TenThousandNodesInWellUnderASecond) {
  Graph graph;
  Value* last = graph.add_input({.name = "x", .meta = TensorMeta{.sizes = {SymExpr::symbol("s0"), 64}}});
  for (int i = 0; i < 10000; ++i) {
    last = graph
               .append("aten::add.Tensor", {{"self", last}, {"other", graph.value("x")}},
                       {{.name = "add", .meta = TensorMeta{.sizes = {SymExpr::symbol("s0"), 64}}}},
                       {"layer", "Type"})
               ->output();
  }
  graph.set_outputs({last}, {GraphOutput{}});
  const auto start = std::chrono::steady_clock::now();
  const std::string text = print_graph(graph);
  const auto read = parse_graph(text);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(print_graph(*read), text);
  EXPECT_EQ(read->nodes().size(), 10000U);
  RecordProperty("seconds", std::to_string(seconds.count()));
  EXPECT_LT(seconds.count(), 1.0);
}

}  // namespace
}  // namespace halftone
