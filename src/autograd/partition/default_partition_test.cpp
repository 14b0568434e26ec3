#include <gmock/gmock.h>

#include "autograd/partition/test_support.h"
#include "graph/test_support.h"

namespace halftone::partition {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Texts {
  std::string forward;
  std::string backward;
};

Texts partition_text(std::string_view text, size_t primals, size_t results, const std::string& first = {}) {
  const PartitionedGraphs graphs = default_partition(joint_from_text(text, primals, results, first));
  lint_or_throw(*graphs.forward, "forward");
  lint_or_throw(*graphs.backward, "backward");
  return {print_graph(*graphs.forward), print_graph(*graphs.backward)};
}

TEST(DefaultPartition, SavesWhatBackwardReads) {
  const Texts texts = partition_text(
      R"(graph(%x: user "x" f32[3, 4], %w: user "w" f32[4, 2], %dy: user "dy" f32[3, 2]) {
  %h: f32[3, 2] = aten::mm(%x, %w)  @ "fc" "Linear"
  %y: f32[3, 2] = aten::relu(%h)  @ "act" "ReLU"
  %dh: f32[3, 2] = aten::threshold_backward(%dy, %y, 0)  @ "act"
  %xt: f32[4, 3; 1, 4] = aten::t(%x)
  %dw: f32[4, 2] = aten::mm(%xt, %dh)  @ "fc"
  return %y, None, %dw
}
)",
      2, 1, "dh");
  EXPECT_EQ(texts.forward,
            R"(graph(%x: user "x" f32[3, 4], %w: user "w" f32[4, 2]) {
  %h: f32[3, 2] = aten::mm(%x, %w)  @ "fc" "Linear"
  %y: f32[3, 2] = aten::relu(%h)  @ "act" "ReLU"
  return %y, %x, %y
}
)");
  EXPECT_EQ(texts.backward,
            R"(graph(%x: user "x" f32[3, 4], %y: user "y" f32[3, 2], %dy: user "dy" f32[3, 2]) {
  %dh: f32[3, 2] = aten::threshold_backward(%dy, %y, 0)  @ "act"
  %xt: f32[4, 3; 1, 4] = aten::t(%x)
  %dw: f32[4, 2] = aten::mm(%xt, %dh)  @ "fc"
  return None, %dw
}
)");
}

TEST(DefaultPartition, ViewsOfPrimalsAndOfSavedValuesAreMadeAgain) {
  const Texts texts = partition_text(
      R"(graph(%w: user "w" f32[2, 4], %x: user "x" f32[4, 4], %dy: user "dy" f32[4, 2]) {
  %wt: f32[4, 2; 1, 4] = aten::t(%w)
  %s: f32[4, 4] = aten::sin(%x)
  %flat: f32[16] = aten::view(%s, [16])
  %back: f32[4, 4] = aten::view(%flat, [4, 4])
  %y: f32[4, 2] = aten::mm(%s, %wt)
  %a: f32[2, 4; 1, 2] = aten::t(%wt)
  %b: f32[4, 4] = aten::mm(%dy, %a)
  %dx: f32[4, 4] = aten::mul.Tensor(%b, %back)
  return %y, None, %dx
}
)",
      2, 1, "a");
  EXPECT_THAT(texts.forward, HasSubstr("return %y, %w, %s\n"));
  EXPECT_THAT(texts.forward, Not(HasSubstr("%flat")));
  EXPECT_THAT(texts.backward, HasSubstr("graph(%w: user \"w\" f32[2, 4], %s: user \"s\" f32[4, 4], %dy"));
  EXPECT_THAT(texts.backward, HasSubstr("%back: f32[4, 4] = aten::view(%flat, [4, 4])"));
}

TEST(DefaultPartition, APieceIsSavedAloneWhereNothingElseNeedsTheWhole) {
  const std::string text =
      R"(graph(%x: user "x" f32[8, 4], %dy: user "dy" f32[4]) {
  %s: f32[8, 4] = aten::sin(%x)
  %row: f32[4] = aten::select.int(%s, 0, 3)
  %other: f32[4] = aten::select.int(%s, 0, 4)
  %y: f32[4] = aten::mul.Tensor(%row, %other)
  %g: f32[4] = aten::mul.Tensor(%dy, %row)
  %all: f32[8, 4; 0, 1] = aten::expand(%g, [8, 4])
  return %y, %all
}
)";
  EXPECT_THAT(partition_text(text, 1, 1, "g").forward, HasSubstr("return %y, %row\n"));
  // Where the whole is needed too, the piece is taken from it.
  std::string whole = text;
  whole.replace(whole.find("mul.Tensor(%dy, %row)"), 21, "mul.Tensor(%s, %row) ");
  EXPECT_THAT(partition_text(whole, 1, 1, "g").forward, HasSubstr("return %y, %s\n"));
}

TEST(DefaultPartition, ListsAreNotSavedButTheirElementsAre) {
  const Texts texts = partition_text(
      R"(graph(%x: user "x" f32[4, 6], %dy: user "dy" f32[4, 2]) {
  %s: f32[4, 6] = aten::sin(%x)
  %parts: list = aten::split.Tensor(%s, 2, 1)
  %a: f32[4, 2; 6, 1], %b: f32[4, 2; 6, 1], %c: f32[4, 2; 6, 1] = builtin::unpack(%parts)
  %y: f32[4, 2] = aten::mul.Tensor(%a, %b)
  %da: f32[4, 2] = aten::mul.Tensor(%dy, %b)
  %dc: f32[4, 6] = aten::cat([%da, %da, %da], 1)
  return %y, %dc
}
)",
      1, 1, "da");
  EXPECT_THAT(texts.forward, HasSubstr("return %y, %b\n"));
  // Used as a list: made again, from the tensor that was split.
  const Texts whole = partition_text(
      R"(graph(%x: user "x" f32[4, 6], %dy: user "dy" f32[4, 6]) {
  %s: f32[4, 6] = aten::sin(%x)
  %parts: list = aten::split.Tensor(%s, 2, 1)
  %y: f32[4, 6] = aten::cat(%parts, 1)
  %again: f32[4, 6] = aten::cat(%parts, 1)
  %dx: f32[4, 6] = aten::mul.Tensor(%dy, %again)
  return %y, %dx
}
)",
      1, 1, "again");
  EXPECT_THAT(whole.forward, HasSubstr("return %y, %s\n"));
  EXPECT_THAT(whole.backward, HasSubstr("%parts: list = aten::split.Tensor(%s, 2, 1)\n"));
}

TEST(DefaultPartition, NumbersAreReadAgain) {
  const Texts texts = partition_text(
      R"(graph(%x: user "x" f32[4], %dy: user "dy" f32[4]) {
  %sum: f32[] = aten::sum(%x)
  %n: float = aten::item(%sum)
  %y: f32[4] = aten::mul.Scalar(%x, %n)
  %dx: f32[4] = aten::mul.Scalar(%dy, %n)
  return %y, %dx
}
)",
      1, 1, "dx");
  EXPECT_THAT(texts.forward, HasSubstr("return %y, %sum\n"));
  EXPECT_THAT(texts.backward, HasSubstr("%n: float = aten::item(%sum)\n"));
}

TEST(DefaultPartition, SeveralResultsOfOneOperator) {
  const Texts texts = partition_text(
      R"(graph(%x: user "x" f32[3, 4], %w: user "w" f32[4], %b: user "b" f32[4], %dy: user "dy" f32[3, 4]) {
  %y: f32[3, 4], %mean: f32[3, 1], %rstd: f32[3, 1] = aten::native_layer_norm(%x, [4], %w, %b, 1e-05)
  %dx: f32[3, 4], %dw: f32[4], %db: f32[4] = aten::native_layer_norm_backward(%dy, %x, [4], %mean, %rstd, %w, %b, [true, true, true])
  return %y, %dx, %dw, %db
}
)",
      3, 1, "dx");
  EXPECT_THAT(texts.forward, HasSubstr("return %y, %x, %w, %b, %mean, %rstd\n"));
}

TEST(DefaultPartition, OutputsMayBeInputsOrNothing) {
  const std::string text =
      R"(graph(%x: user "x" f32[2], %w: user "w" f32[2], %b: user "b" f32[2], %dy: user "dy" f32[2], %dz: user "dz" f32[2]) {
  %y: f32[2] = aten::mul.Tensor(%x, %w)
  %unused: f32[2] = aten::sin(%x)
  %only_gradient: f32[2] = aten::cos(%x)
  return %x, %y, input_mutation "b" %y, %w, %dy, %only_gradient
}
)";
  const Texts texts = partition_text(text, 3, 3);
  EXPECT_EQ(texts.forward,
            R"(graph(%x: user "x" f32[2], %w: user "w" f32[2], %b: user "b" f32[2]) {
  %y: f32[2] = aten::mul.Tensor(%x, %w)
  %only_gradient: f32[2] = aten::cos(%x)
  return %x, %y, input_mutation "b" %y, %w, %only_gradient
}
)");
  EXPECT_EQ(
      texts.backward,
      R"(graph(%w: user "w" f32[2], %only_gradient: user "only_gradient" f32[2], %dy: user "dy" f32[2], %dz: user "dz" f32[2]) {
  return %w, %dy, %only_gradient
}
)");
}

TEST(DefaultPartition, WhatTheBackwardPassComputedFromPrimalsStaysThere) {
  const std::string text =
      R"(graph(%x: user "x" f32[2], %dy: user "dy" f32[2]) {
  %y: f32[2] = aten::sin(%x)
  %c: f32[2] = aten::cos(%x)
  %dx: f32[2] = aten::mul.Tensor(%dy, %c)
  return %y, %dx
}
)";
  EXPECT_THAT(partition_text(text, 1, 1, "c").forward, HasSubstr("return %y, %x\n"));
  EXPECT_THAT(partition_text(text, 1, 1, "dx").forward, HasSubstr("return %y, %c\n"));
  EXPECT_THAT(partition_text(text, 1, 1).forward, HasSubstr("return %y, %c\n"));
}

TEST(DefaultPartition, RandomOperatorsStayWhereTheyRan) {
  const Texts texts = partition_text(
      R"(graph(%x: user "x" f32[2], %dy: user "dy" f32[2]) {
  %unused: f32[2] = aten::rand_like(%x)
  %y: f32[2], %mask: bool[2] = aten::native_dropout(%x, 0.5, true)
  %noise: f32[2] = aten::rand_like(%x)
  %g: f32[2] = aten::native_dropout_backward(%dy, %mask, 2.0)
  %dx: f32[2] = aten::add.Tensor(%g, %noise)
  return %y, %dx
}
)",
      1, 1, "noise");
  EXPECT_THAT(texts.forward, HasSubstr("%unused: f32[2] = aten::rand_like(%x)\n"));
  EXPECT_THAT(texts.forward, Not(HasSubstr("%noise")));
  EXPECT_THAT(texts.forward, HasSubstr("return %y, %x, %mask\n"));
  EXPECT_THAT(texts.backward, Not(HasSubstr("native_dropout(")));
  EXPECT_THAT(texts.backward, HasSubstr("%noise: f32[2] = aten::rand_like(%x)\n"));
}

TEST(DefaultPartition, NeedsNoSizes) {
  const Texts texts = partition_text(
      R"(graph(%x: user "x" f32[s0], %dy: user "dy" f32[s0]) {
  %y: tensor = aten::sin(%x)
  %v: tensor = aten::unsqueeze(%y, 0)
  %g: tensor = aten::unsqueeze(%dy, 0)
  %dx: tensor = aten::mul.Tensor(%g, %v)
  return %y, %dx
}
)",
      1, 1, "g");
  EXPECT_THAT(texts.forward, HasSubstr("return %y, %y\n"));
}

TEST(DefaultPartition, ChecksStayInTheirPass) {
  const Texts texts = partition_text(
      R"(graph(%x: user "x" f32[2], %dy: user "dy" f32[2]) {
  %ok: bool[2] = aten::isfinite(%x)
  %all: bool[] = aten::all(%ok)
  aten::_assert_async.msg(%all, "x is not finite")
  %y: f32[2] = aten::sin(%x)
  %c: f32[2] = aten::cos(%x)
  %any: bool[] = aten::any(%c)
  aten::_assert_async.msg(%any, "no slope")
  %dx: f32[2] = aten::mul.Tensor(%dy, %c)
  return %y, %dx
}
)",
      1, 1, "c");
  EXPECT_THAT(texts.forward, HasSubstr("aten::_assert_async.msg(%all, \"x is not finite\")\n"));
  EXPECT_THAT(texts.forward, Not(HasSubstr("no slope")));
  EXPECT_THAT(texts.backward, HasSubstr("aten::_assert_async.msg(%any, \"no slope\")\n"));
  EXPECT_THAT(texts.backward, Not(HasSubstr("not finite")));
}

TEST(DefaultPartition, RefusesWhatIsNoJointGraph) {
  const std::string text =
      R"(graph(%x: user "x" f32[2], %dy: user "dy" f32[2]) {
  %y: f32[2] = aten::mul.Tensor(%x, %dy)
  return %y, %dy
}
)";
  expect_error(ErrorCode::kInvalidArgument, {"result", "%y"}, [&] { partition_text(text, 1, 1); });
  expect_error(ErrorCode::kInvalidArgument, {"2 results and 1 primals has 2 outputs"},
               [&] { partition_text(text, 1, 2); });
  JointGraph joint = joint_from_text(text, 1, 1);
  joint.tangents = 2;
  expect_error(ErrorCode::kInvalidArgument, {"has 2 inputs"}, [&] { (void)default_partition(joint); });
  joint.graph = nullptr;
  expect_error(ErrorCode::kInvalidArgument, {"without a graph"}, [&] { (void)default_partition(joint); });
}

TEST(SavedBytes, CountEachMemoryOnceAndPrimalsNever) {
  const auto bytes = [](const std::string& saved) {
    PartitionedGraphs graphs;
    graphs.forward = parse_graph(R"(graph(%x: user "x" f32[8, 4]) {
  %view: f32[32] = aten::view(%x, [32])
  %s: f64[8, 4] = aten::_to_copy(%x, dtype=dtype:f64)
  %row: f64[4] = aten::select.int(%s, 0, 3)
  %mask: bool[8, 4] = aten::gt.Scalar(%x, 0)
  return %row, )" + saved + "\n}\n");
    graphs.saved = graphs.forward->outputs().size() - 1;
    return saved_bytes(graphs);
  };
  EXPECT_EQ(bytes("%x, %view"), 0);
  EXPECT_EQ(bytes("%s"), 256);
  EXPECT_EQ(bytes("%row"), 256);  // keeps the whole alive
  EXPECT_EQ(bytes("%s, %row, %mask"), 288);
}

}  // namespace
}  // namespace halftone::partition
