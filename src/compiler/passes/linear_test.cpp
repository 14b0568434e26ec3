// canonical_linear, fuse_linear, fuse_activation, fuse_residual, fuse_norm, fuse_norm_sum, join_linears,
// fold_scalars.
#include "compiler/passes/test_support.h"

namespace halftone::compiler {
namespace {

using testing::Contains;
using testing::HasSubstr;

TensorMap weights() {
  return {{"w", at::randn({6, 4})}, {"w2", at::randn({6, 4})}, {"wt", at::randn({4, 6})},
          {"b", at::randn({6})},    {"g", at::randn({6})},     {"sq", at::randn({4, 4})},
          {"g4", at::randn({4})}};
}

TEST(CanonicalLinear, EverySpelling) {
  const Rewritten graphs = rewrite(
      R"(graph(%w: parameter "w" f32[6, 4], %wt: parameter "wt" f32[4, 6], %b: parameter "b" f32[6], %x: user "x" f32[s0, 4], %y: user "y" f32[2, 3, 4]) {
    %t: f32[4, 6; 1, 4] = aten::t(%w)
    %p: f32[4, 6; 1, 4] = aten::permute(%w, [1, 0])
    %copy: f32[4, 6] = aten::t_copy(%w)
    %a: f32[s0, 6] = aten::addmm(%b, %x, %t)
    %c: f32[s0, 6] = aten::mm(%x, %p)
    %d: f32[s0, 6] = aten::mm(%x, %copy)
    %e: f32[2, 3, 6] = aten::matmul(%y, %wt)
    %f: f32[2, 3, 6] = aten::add.Tensor(%e, %b)
    %big: f32[2, 4, 6; 0, 1, 4] = aten::expand(%t, [2, 4, 6])
    %h: f32[2, 3, 6] = aten::bmm(%y, %big)
    return %a, %c, %d, %f, %h
  })",
      weights(), {"canonical_linear"});
  EXPECT_EQ(graphs.count("aten::linear"), 5);
  EXPECT_EQ(graphs.after->nodes().size(), 5);
  expect_same_results(graphs, {at::randn({5, 4}), at::randn({2, 3, 4})}, 1e-5);
}

TEST(CanonicalLinear, RowsAreNotFlattened) {
  const Rewritten graphs =
      rewrite(R"(graph(%w: parameter "w" f32[6, 4], %b: parameter "b" f32[6], %x: user "x" f32[s0, 3, 4]) {
    %n: int(s0) = aten::sym_size.int(%x, 0)
    %rows: int(3*s0) = sym::mul(%n, 3)
    %flat: f32[3*s0, 4] = aten::view(%x, [%rows, 4])
    %t: f32[4, 6; 1, 4] = aten::t(%w)
    %a: f32[3*s0, 6] = aten::addmm(%b, %flat, %t)
    %y: f32[s0, 3, 6] = aten::view(%a, [%n, 3, 6])
    %r: f32[s0, 3, 6] = aten::relu(%y)
    return %r
  })",
              weights(), {"canonical_linear"});
  EXPECT_EQ(graphs.text(),
            print_graph(*parse_graph(
                R"(graph(%w: parameter "w" f32[6, 4], %b: parameter "b" f32[6], %x: user "x" f32[s0, 3, 4]) {
    %a_rows: f32[s0, 3, 6] = aten::linear(%x, %w, %b)
    %r: f32[s0, 3, 6] = aten::relu(%a_rows)
    return %r
  })")));
  expect_same_results(graphs, {at::randn({2, 3, 4})}, 1e-5);
}

// As quantize_ leaves a C++ module's Linear: rows flattened before, unflattened behind.
TEST(CanonicalLinear, RowsOfQuantizedLinearsAreNotFlattened) {
  const std::string text =
      R"(graph(%w: constant "w" i8[6, 4], %s: constant "s" f32[6], %b: parameter "b" f32[6], %x: user "x" f32[s0, 3, 4]) {
    %n: int(s0) = aten::sym_size.int(%x, 0)
    %rows: int(3*s0) = sym::mul(%n, 3)
    %flat: f32[3*s0, 4] = aten::view(%x, [%rows, 4])
    %a: f32[3*s0, 6] = halftone::int8_linear(%flat, %w, %s, %b, weight_bits=7)
    %y: f32[s0, 3, 6] = aten::view(%a, [%n, 3, 6])
    %r: f32[s0, 3, 6] = aten::gelu(%y)
    return %r
  })";
  at::manual_seed(7);
  const TensorMap tensors = {{"w", at::randint(-64, 65, {6, 4}).to(at::kChar)},
                             {"s", at::rand({6}) * 0.02 + 0.001},
                             {"b", at::randn({6})}};
  const Rewritten plain = rewrite(text, tensors, {"canonical_linear"});
  EXPECT_EQ(plain.count("aten::view"), 0);
  EXPECT_THAT(plain.text(), HasSubstr("halftone::int8_linear(%x, %w, %s, %b, weight_bits=7)"));
  expect_same_results(plain, {at::randn({2, 3, 4})});
  // So the activation reaches the linear.
  const Rewritten fused = rewrite(text, tensors);
  EXPECT_EQ(fused.count("aten::gelu"), 0);
  EXPECT_EQ(fused.count("halftone::fused_linear"), 1);
  expect_same_results(fused, {at::randn({2, 3, 4})}, 1e-5);
}

// A C++ Linear on rows of three dimensions is a product and a sum: the sum is not part of what quantize_
// takes.
TEST(CanonicalLinear, QuantizedLinearsTakeTheBiasBehindThem) {
  const std::string text =
      R"(graph(%w: constant "w" i8[6, 4], %s: constant "s" f32[6], %b: parameter "b" f32[6], %x: user "x" f32[2, 3, 4]) {
    %a: f32[2, 3, 6] = halftone::int8_linear(%x, %w, %s, weight_bits=7)
    %y: f32[2, 3, 6] = aten::add.Tensor(%a, %b)
    %r: f32[2, 3, 6] = aten::gelu(%y)
    return %r
  })";
  at::manual_seed(8);
  const TensorMap tensors = {{"w", at::randint(-64, 65, {6, 4}).to(at::kChar)},
                             {"s", at::rand({6}) * 0.02 + 0.001},
                             {"b", at::randn({6})}};
  const Rewritten plain = rewrite(text, tensors, {"canonical_linear"});
  EXPECT_EQ(plain.count("aten::add.Tensor"), 0);
  EXPECT_THAT(plain.text(), HasSubstr("halftone::int8_linear(%x, %w, %s, %b, weight_bits=7)"));
  expect_same_results(plain, {at::randn({2, 3, 4})}, 1e-5);
  const Rewritten fused = rewrite(text, tensors);
  EXPECT_EQ(fused.after->nodes().size(), 1u) << fused.text();
  expect_same_results(fused, {at::randn({2, 3, 4})}, 1e-5);
}

TEST(CanonicalLinear, LeavesScaledAddmm) {
  const Rewritten graphs =
      rewrite(R"(graph(%wt: parameter "wt" f32[4, 6], %b: parameter "b" f32[6], %x: user "x" f32[2, 4]) {
    %a: f32[2, 6] = aten::addmm(%b, %x, %wt, alpha=2)
    return %a
  })",
              weights(), {"canonical_linear"});
  EXPECT_EQ(graphs.count("aten::addmm"), 1);
  EXPECT_THAT(graphs.log, Contains(HasSubstr("keeps addmm")));
}

constexpr const char* kBlock =
    R"(graph(%w: parameter "w" f32[6, 4], %b: parameter "b" f32[6], %g: parameter "g" f32[6], %x: user "x" f32[s0, 4], %r: user "r" f32[s0, 6]) {
    %l: f32[s0, 6] = aten::linear(%x, %w, %b)  @ "fc" "Linear"
    %a: f32[s0, 6] = aten::gelu(%l)
    %sum: f32[s0, 6] = aten::add.Tensor(%r, %a)
    %y: f32[s0, 6] = aten::layer_norm(%sum, [6], %g, %b, 1e-06)  @ "norm" "LayerNorm"
    return %y, %sum
  })";

TEST(Fuse, LinearActivationResidualNorm) {
  const Rewritten graphs =
      rewrite(kBlock, weights(), {"fuse_linear", "fuse_activation", "fuse_residual", "fuse_norm"});
  EXPECT_EQ(
      graphs.text(),
      print_graph(*parse_graph(
          R"(graph(%w: parameter "w" f32[6, 4], %b: parameter "b" f32[6], %g: parameter "g" f32[6], %x: user "x" f32[s0, 4], %r: user "r" f32[s0, 6]) {
    %sum: f32[s0, 6], %sum_q: u8[s0, 6], %sum_scale: f32[s0], %sum_zero_point: i32[s0] = halftone::fused_linear(%x, None, None, [%w], %b, %r, format="fp32", attributes=[], activation="gelu", symmetric=false)  @ "fc" "Linear"
    %y: f32[s0, 6], %y_sum: f32[s0, 6], %y_q: u8[s0, 6], %y_scale: f32[s0], %y_zero_point: i32[s0] = halftone::norm(%sum, None, %g, %b, kind="layer", eps=1e-06, symmetric=false)  @ "norm" "LayerNorm"
    return %y, %sum
  })")));
  expect_same_results(graphs, {at::randn({5, 4}), at::randn({5, 6})}, 1e-5);
}

TEST(Fuse, NormTakesTheSumWhereNoLinearDoes) {
  const Rewritten apart = rewrite(kBlock, weights(), {"fuse_norm"});
  EXPECT_EQ(apart.count("aten::add.Tensor"), 1);
  EXPECT_EQ(apart.count("halftone::norm"), 1);
  const Rewritten graphs = rewrite(kBlock, weights(), {"fuse_norm", "fuse_norm_sum"});
  EXPECT_EQ(graphs.count("aten::add.Tensor"), 0);
  EXPECT_EQ(graphs.count("halftone::norm"), 1);
  expect_same_results(graphs, {at::randn({5, 4}), at::randn({5, 6})}, 1e-5);
}

TEST(Fuse, RmsNormHoweverItIsSpelled) {
  const Rewritten graphs = rewrite(R"(graph(%g: parameter "g" f32[6], %x: user "x" f32[s0, 6]) {
    %sq: f32[s0, 6] = aten::pow.Tensor_Scalar(%x, 2)
    %m: f32[s0, 1] = aten::mean.dim(%sq, [-1], true)
    %e: f32[s0, 1] = aten::add.Tensor(%m, 1e-06)
    %i: f32[s0, 1] = aten::rsqrt(%e)
    %n: f32[s0, 6] = aten::mul.Tensor(%x, %i)
    %y: f32[s0, 6] = aten::mul.Tensor(%g, %n)
    %z: f32[s0, 6] = aten::rms_norm(%x, [6], %g, 1e-06)
    %native: f32[s0, 6], %mean: f32[s0, 1], %rstd: f32[s0, 1] = aten::native_layer_norm(%x, [6], %g, None, 1e-06)
    return %y, %z, %native
  })",
                                   weights(), {"fuse_norm"});
  EXPECT_EQ(graphs.count("halftone::norm"), 3);
  EXPECT_EQ(graphs.after->nodes().size(), 3);
  expect_same_results(graphs, {at::randn({5, 6})}, 1e-5);
}

TEST(Fuse, RefusesWhatOthersRead) {
  const Rewritten graphs =
      rewrite(R"(graph(%w: parameter "w" f32[6, 4], %x: user "x" f32[2, 4], %computed: user "c" f32[6, 4]) {
    %l: f32[2, 6] = aten::linear(%x, %w)
    %a: f32[2, 6] = aten::relu(%l)
    %sum: f32[2, 6] = aten::add.Tensor(%l, %a)
    %k: f32[2, 6] = aten::linear(%x, %computed)
    return %sum, %k
  })",
              weights(), {"fuse_linear", "fuse_activation", "fuse_residual"});
  EXPECT_EQ(graphs.count("aten::relu"), 1);
  EXPECT_EQ(graphs.count("aten::add.Tensor"), 1);
  EXPECT_THAT(graphs.log, Contains(HasSubstr("its weight is computed or written")));
  expect_same_results(graphs, {at::randn({2, 4}), at::randn({6, 4})}, 1e-5);
}

TEST(Fuse, SiluSpelledOut) {
  const Rewritten graphs = rewrite(R"(graph(%w: parameter "w" f32[6, 4], %x: user "x" f32[2, 4]) {
    %l: f32[2, 6] = aten::linear(%x, %w)
    %s: f32[2, 6] = aten::sigmoid(%l)
    %y: f32[2, 6] = aten::mul.Tensor(%l, %s)
    return %y
  })",
                                   weights(), {"fuse_linear", "fuse_activation"});
  EXPECT_EQ(graphs.after->nodes().size(), 1);
  EXPECT_THAT(graphs.text(), HasSubstr("activation=\"silu\""));
  expect_same_results(graphs, {at::randn({2, 4})}, 1e-5);
}

TEST(JoinLinears, ResultsAreSlices) {
  const Rewritten graphs = rewrite(
      R"(graph(%w: parameter "w" f32[6, 4], %w2: parameter "w2" f32[6, 4], %b: parameter "b" f32[6], %x: user "x" f32[s0, 4]) {
    %q: f32[s0, 6] = aten::linear(%x, %w, %b)
    %k: f32[s0, 6] = aten::linear(%x, %w2)
    %n: int(s0) = aten::sym_size.int(%x, 0)
    %v: f32[s0, 2, 3] = aten::view(%q, [%n, 2, 3])
    %t: f32[2, s0, 3; 3, 6, 1] = aten::transpose.int(%v, 0, 1)
    %a: f32[2, s0, 3; 3, 6, 1] = aten::neg(%t)
    %c: f32[s0, 6] = aten::exp(%k)
    return %a, %c
  })",
      weights(), {"fuse_linear", "join_linears"});
  EXPECT_EQ(graphs.count("halftone::fused_linear"), 1);
  EXPECT_EQ(graphs.count("aten::slice.Tensor"), 2);
  EXPECT_EQ(graphs.tensors.at("compiled.q_joined_part0").size(0), 12);
  EXPECT_THAT(graphs.text(), HasSubstr("%k: f32[s0, 6; 12, 1] = aten::slice.Tensor(%q_joined, -1, 6, 12)"));
  expect_same_results(graphs, {at::randn({5, 4})}, 1e-5);
}

TEST(JoinLinears, NotWhereAViewNeedsDenseRowsOrACallerGetsTheResult) {
  const Rewritten merged =
      rewrite(R"(graph(%w: parameter "w" f32[6, 4], %w2: parameter "w2" f32[6, 4], %x: user "x" f32[s0, 4]) {
    %q: f32[s0, 6] = aten::linear(%x, %w)
    %k: f32[s0, 6] = aten::linear(%x, %w2)
    %v: f32[6*s0] = aten::view(%q, [-1])
    %a: f32[6*s0] = aten::neg(%v)
    %c: f32[s0, 6] = aten::exp(%k)
    return %a, %c
  })",
              weights(), {"fuse_linear", "join_linears"});
  EXPECT_EQ(merged.count("halftone::fused_linear"), 2);
  EXPECT_THAT(merged.log, Contains(HasSubstr("a view needs its rows dense")));
  const Rewritten returned =
      rewrite(R"(graph(%w: parameter "w" f32[6, 4], %w2: parameter "w2" f32[6, 4], %x: user "x" f32[s0, 4]) {
    %q: f32[s0, 6] = aten::linear(%x, %w)
    %k: f32[s0, 6] = aten::linear(%x, %w2)
    return %q, %k
  })",
              weights(), {"fuse_linear", "join_linears"});
  EXPECT_EQ(returned.count("halftone::fused_linear"), 2);
}

TEST(FoldScalars, IntoWeightAndBias) {
  const Rewritten graphs =
      rewrite(R"(graph(%w: parameter "w" f32[6, 4], %b: parameter "b" f32[6], %x: user "x" f32[s0, 4]) {
    %l: f32[s0, 6] = aten::linear(%x, %w, %b)
    %m: f32[s0, 6] = aten::mul.Tensor(%l, 3.0)
    %d: f32[s0, 6] = aten::div.Tensor(%m, 4.0)
    %y: f32[s0, 6] = aten::add.Tensor(%d, 1.5)
    return %y
  })",
              weights(), {"fold_scalars", "drop_unused"});
  EXPECT_EQ(graphs.after->nodes().size(), 1);
  expect_same_results(graphs, {at::randn({5, 4})}, 1e-5);
}

TEST(Fuse, NothingThatIsWritten) {
  const Rewritten graphs =
      rewrite(R"(graph(%sq: buffer "sq" f32[4, 4], %g: parameter "g4" f32[4], %x: user "x" f32[2, 4]) {
    %l: f32[2, 4] = aten::linear(%x, %sq)
    %a: f32[2, 4] = aten::relu(%l)
    %w: f32[4, 4] = aten::add_.Tensor(%sq, 1)
    %m: f32[2, 4] = aten::linear(%a, %sq)
    %s: f32[2, 4] = aten::add.Tensor(%m, %x)
    %y: f32[2, 4] = aten::layer_norm(%s, [4], %g)
    return %y
  })",
              weights());
  EXPECT_EQ(graphs.count("aten::linear"), 2);
  EXPECT_EQ(graphs.count("halftone::norm"), 1);
  expect_same_results(graphs, {at::randn({2, 4})}, 1e-5);
}

constexpr const char* kPatches =
    R"(graph(%w: parameter "w" f32[10, 3, 4, 2], %b: parameter "b" f32[10], %x: user "x" f32[s0, 3, 12, 8]) {
    %c: f32[s0, 10, 3, 4] = aten::conv2d(%x, %w, %b, [4, 2])  @ "embed" "Conv2d"
    %f: f32[s0, 10, 12] = aten::flatten.using_ints(%c, 2)
    %t: f32[s0, 12, 10; 120, 1, 12] = aten::transpose.int(%f, 1, 2)
    %y: f32[s0, 24, 10] = aten::cat([%t, %t], 1)
    return %y
  })";

TEST(PatchesToLinear, APatchIsARow) {
  const Rewritten graphs = rewrite(kPatches, {{"w", at::randn({10, 3, 4, 2})}, {"b", at::randn({10})}},
                                   {"patches_to_linear", "drop_unused"});
  EXPECT_EQ(graphs.count("aten::conv2d"), 0);
  EXPECT_EQ(graphs.count("aten::linear"), 1);
  EXPECT_THAT(graphs.text(), testing::HasSubstr("[-1, 3, 3, 4, 4, 2]"));
  for (const int64_t batch : {0, 1, 3}) expect_same_results(graphs, {at::randn({batch, 3, 12, 8})}, 1e-5);
  expect_same_results(graphs, {at::randn({2, 12, 8, 3}).permute({0, 3, 1, 2})}, 1e-5);
}

TEST(PatchesToLinear, NotWherePatchesOverlapOrTheImageIsSeen) {
  const auto refused = [](std::string text, const std::string& from, const std::string& to) {
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const Rewritten graphs =
        rewrite(text, {{"w", at::randn({10, 3, 4, 2})}, {"b", at::randn({10})}}, {"patches_to_linear"});
    EXPECT_EQ(graphs.count("aten::conv2d"), 1) << to;
  };
  refused(kPatches, "[s0, 10, 3, 4] = aten::conv2d(%x, %w, %b, [4, 2])",
          "[s0, 10, 5, 4] = aten::conv2d(%x, %w, %b, [2, 2])");
  refused(kPatches, "%b, [4, 2])", "%b, [4, 2], [0, 0], [1, 1], 3)");
  refused(kPatches, "return %y", "return %y, %c");
  refused(kPatches, "return %y", "return %y, %f");
  refused(kPatches, "return %y", "return %y, %t");
  refused(kPatches, "%y: f32[s0, 24, 10] = aten::cat([%t, %t], 1)",
          "%y: f32[s0, 12, 10; 120, 1, 12] = aten::relu(%t)");
}

}  // namespace
}  // namespace halftone::compiler
