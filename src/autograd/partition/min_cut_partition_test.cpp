#include <gmock/gmock.h>

#include "autograd/partition/test_support.h"
#include "graph/test_support.h"

namespace halftone::partition {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Parts {
  std::string forward;
  std::string backward;
  int64_t bytes = 0;
};

Parts cut(std::string_view text, size_t primals, size_t results, const std::string& first = {},
          double budget = 1) {
  const JointGraph joint = joint_from_text(text, primals, results, first);
  const PartitionedGraphs graphs = min_cut_rematerialization_partition(joint, {budget});
  return {print_graph(*graphs.forward), print_graph(*graphs.backward), saved_bytes(graphs)};
}

TEST(MinCutPartition, RunsCheapChainsAgainNextToTheirUse) {
  const Parts parts = cut(
      R"(graph(%x: user "x" f32[64], %w: user "w" f32[64], %dy: user "dy" f32[64]) {
  %a: f32[64] = aten::sin(%x)  @ "first"
  %b: f32[64] = aten::exp(%a)  @ "second"
  %y: f32[64] = aten::mul.Tensor(%b, %w)
  %dw: f32[64] = aten::mul.Tensor(%dy, %b)
  %db: f32[64] = aten::mul.Tensor(%dy, %w)
  %da: f32[64] = aten::mul.Tensor(%db, %b)
  %c: f32[64] = aten::cos(%x)
  %dx: f32[64] = aten::mul.Tensor(%da, %c)
  return %y, %dx, %dw
}
)",
      2, 1, "dw");
  EXPECT_EQ(parts.forward, R"(graph(%x: user "x" f32[64], %w: user "w" f32[64]) {
  %a: f32[64] = aten::sin(%x)  @ "first"
  %b: f32[64] = aten::exp(%a)  @ "second"
  %y: f32[64] = aten::mul.Tensor(%b, %w)
  return %y, %x, %w
}
)");
  EXPECT_EQ(parts.backward,
            R"(graph(%x: user "x" f32[64], %w: user "w" f32[64], %dy: user "dy" f32[64]) {
  %a: f32[64] = aten::sin(%x)  @ "first"
  %b: f32[64] = aten::exp(%a)  @ "second"
  %dw: f32[64] = aten::mul.Tensor(%dy, %b)
  %db: f32[64] = aten::mul.Tensor(%dy, %w)
  %da: f32[64] = aten::mul.Tensor(%db, %b)
  %c: f32[64] = aten::cos(%x)
  %dx: f32[64] = aten::mul.Tensor(%da, %c)
  return %dx, %dw
}
)");
  EXPECT_EQ(parts.bytes, 0);
}

// A wide product, an activation with a mask, and a backward that reads both.
constexpr std::string_view kProduct =
    R"(graph(%x: user "x" f32[8, 8], %w: user "w" f32[8, 8], %dy: user "dy" f32[8, 8]) {
  %h: f32[8, 8] = aten::mm(%x, %w)
  %a: f32[8, 8] = aten::add.Scalar(%h, 1)
  %y: f32[8, 8] = aten::relu(%a)
  %z: f32[8, 8] = aten::mul.Tensor(%y, %y)
  %mask: bool[8, 8] = aten::gt.Scalar(%a, 0)
  %g: f32[8, 8] = aten::where.self(%mask, %dy, %h)
  return %z, %g, None
}
)";

TEST(MinCutPartition, CostlyOperatorsRunAgainOnlyWithoutBudget) {
  const Parts normal = cut(kProduct, 2, 1, "mask");
  EXPECT_THAT(normal.forward, HasSubstr("return %z, %h\n"));
  EXPECT_EQ(normal.bytes, 256);
  const Parts poor = cut(kProduct, 2, 1, "mask", 0);
  EXPECT_THAT(poor.forward, HasSubstr("return %z, %x, %w\n"));
  EXPECT_THAT(poor.backward, HasSubstr("aten::mm(%x, %w)"));
  EXPECT_EQ(poor.bytes, 0);
}

TEST(MinCutPartition, AMaskIsSavedInsteadOfWhatItCameFrom) {
  const Parts parts = cut(
      R"(graph(%x: user "x" f32[8, 8], %w: user "w" f32[8, 8], %dy: user "dy" f32[8, 8]) {
  %h: f32[8, 8] = aten::mm(%x, %w)
  %y: f32[8, 8] = aten::relu(%h)
  %p: bool[8, 8] = aten::gt.Scalar(%h, 0)
  %g: f32[8, 8] = aten::mul.Tensor(%dy, %p)
  return %y, %g, None
}
)",
      2, 1, "p");
  EXPECT_THAT(parts.forward, HasSubstr("return %y, %p\n"));
  EXPECT_EQ(parts.bytes, 64);
}

TEST(MinCutPartition, OperandsOfProductsAndReductionsAreKept) {
  const Parts parts = cut(
      R"(graph(%x: user "x" f32[8, 8], %dy: user "dy" f32[8, 8]) {
  %a: f32[8, 8] = aten::gelu(%x)
  %m: f32[8, 1] = aten::mean.dim(%a, [1], true)
  %y: f32[8, 8] = aten::sub.Tensor(%a, %m)
  %at: f32[8, 8; 1, 8] = aten::t(%a)
  %g: f32[8, 8] = aten::mm(%at, %dy)
  %dx: f32[8, 8] = aten::mul.Tensor(%g, %m)
  return %y, %dx
}
)",
      1, 1, "at");
  EXPECT_THAT(parts.forward, HasSubstr("return %y, %a, %m\n"));
  EXPECT_THAT(parts.backward, Not(HasSubstr("gelu")));
}

TEST(MinCutPartition, DropoutNeverRunsInBackward) {
  const std::string text =
      R"(graph(%x: user "x" f32[8, 8], %dy: user "dy" f32[8, 8]) {
  %s: f32[8, 8] = aten::sin(%x)
  %d: f32[8, 8], %mask: bool[8, 8] = aten::native_dropout(%s, 0.5, true)
  %y: f32[8, 8] = aten::exp(%d)
  %noise: f32[8, 8] = aten::randn_like(%x)
  %n: f32[8, 8] = aten::sin(%noise)
  %e: f32[8, 8] = aten::mul.Tensor(%dy, %y)
  %f: f32[8, 8] = aten::mul.Tensor(%e, %n)
  %g: f32[8, 8] = aten::native_dropout_backward(%f, %mask, 2.0)
  return %y, %g
}
)";
  for (const double budget : {0.0, 0.2, 0.5, 0.8, 1.0}) {
    const Parts parts = cut(text, 1, 1, "e", budget);
    EXPECT_THAT(parts.backward, Not(HasSubstr("native_dropout("))) << budget;
    EXPECT_THAT(parts.backward, Not(HasSubstr("randn_like"))) << budget;
    EXPECT_THAT(parts.forward, HasSubstr("native_dropout(")) << budget;
    EXPECT_THAT(parts.forward, HasSubstr("randn_like(%x)")) << budget;
  }
}

TEST(MinCutPartition, EqualNodesAreOneButOutputsStayApart) {
  const Parts parts = cut(
      R"(graph(%x: user "x" f32[8], %dy: user "dy" f32[8]) {
  %y: f32[8] = aten::sin(%x)
  %z: f32[8] = aten::sin(%x)
  %a: f32[8] = aten::cos(%x)
  %b: f32[8] = aten::cos(%x)
  %c: f32[8] = aten::mul.Scalar(%a, 0.0)
  %d: f32[8] = aten::mul.Scalar(%b, -0.0)
  %e: f32[8] = aten::add.Tensor(%c, %d)
  %dx: f32[8] = aten::mul.Tensor(%dy, %e)
  return %y, %z, %dx
}
)",
      1, 2, "a");
  EXPECT_THAT(parts.forward, HasSubstr("%z: f32[8] = aten::sin(%x)\n"));
  EXPECT_THAT(parts.backward, Not(HasSubstr("%b")));
  EXPECT_THAT(parts.backward, HasSubstr("aten::mul.Scalar(%a, -0.0)"));
}

TEST(MinCutPartition, BudgetsAreMonotone) {
  std::string text =
      R"(graph(%x: user "x" f32[16, 16], %w: user "w" f32[16, 16], %dy: user "dy" f32[16, 16]) {
  %h0: f32[16, 16] = aten::sin(%x)
)";
  constexpr int kLayers = 8;
  const auto line = [&](const std::string& name, const std::string& call) {
    text += "  %" + name + ": f32[16, 16] = aten::" + call + "\n";
  };
  for (int i = 0; i < kLayers; ++i) {
    const std::string n = std::to_string(i);
    line("m" + n, "mm(%h" + n + ", %w)");
    line("h" + std::to_string(i + 1), "gelu(%m" + n + ")");
  }
  std::string gradient = "dy";
  for (int i = kLayers; i-- > 0;) {
    const std::string n = std::to_string(i);
    line("g" + n, "gelu_backward(%" + gradient + ", %m" + n + ")");
    line("d" + n, "mm(%g" + n + ", %h" + n + ")");
    gradient = "d" + n;
  }
  text += "  return %h8, %d0, %d7\n}\n";
  int64_t last = -1;
  int different = 0;
  for (int step = 0; step <= 20; ++step) {
    const int64_t bytes = cut(text, 2, 1, "g7", step / 20.0).bytes;
    EXPECT_GE(bytes, last) << step;
    different += bytes != last ? 1 : 0;
    last = bytes;
  }
  EXPECT_EQ(cut(text, 2, 1, "g7", 0).bytes, 0);
  EXPECT_GE(different, 8);
  // Half the budget is met, not only undercut.
  EXPECT_GE(cut(text, 2, 1, "g7", 0.5).bytes, last / 3);
  EXPECT_LE(cut(text, 2, 1, "g7", 0.5).bytes, last / 2);
}

TEST(MinCutPartition, RefusesBudgetsOutOfRange) {
  for (const double budget : {-0.1, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    expect_error(ErrorCode::kInvalidArgument, {"memory budget"},
                 [&] { cut(kProduct, 2, 1, "mask", budget); });
  }
}

TEST(MinCutPartition, NeedsToKnowSizes) {
  expect_error(ErrorCode::kInvalidArgument, {"%y", "not known"}, [&] {
    cut(R"(graph(%x: user "x" f32[8], %dy: user "dy" f32[8]) {
  %y: tensor = aten::sin(%x)
  %dx: f32[8] = aten::mul.Tensor(%dy, %y)
  return %y, %dx
}
)",
        1, 1, "dx");
  });
}

}  // namespace
}  // namespace halftone::partition
