// fold_constants, common_subexpressions, fold_batch_norm, quantize_once, drop_unused.
#include "compiler/passes/test_support.h"
#include "quant/weight/ops.h"

namespace halftone::compiler {
namespace {

using testing::Contains;
using testing::HasSubstr;

TEST(FoldConstants, RunsWhatReadsOnlyConstants) {
  const Rewritten graphs = rewrite(R"(graph(%f: buffer "f" f32[8], %x: user "x" f32[8]) {
    %c: f32[16] = aten::cat([%f, %f])
    %s: f32[8; 1] = aten::slice.Tensor(%c, 0, 4, 12)
    %i: f32[8] = aten::arange(8, dtype=dtype:f32)
    %t: f32[8] = aten::mul.Tensor(%s, %i)
    %y: f32[8] = aten::add.Tensor(%x, %t)
    return %y
  })",
                                   {{"f", at::randn({8})}}, {"fold_constants", "drop_unused"});
  EXPECT_EQ(graphs.after->nodes().size(), 1);
  EXPECT_EQ(graphs.tensors.size(), 1);
  expect_same_results(graphs, {at::randn({8})});
}

TEST(FoldConstants, NotRandomNotWrittenNotReturnedNotLarge) {
  const Rewritten graphs =
      rewrite(R"(graph(%f: buffer "f" f32[1], %g: buffer "g" f32[1], %x: user "x" f32[1]) {
    %r: f32[8] = aten::rand([8])
    %w: f32[1] = aten::add_.Tensor(%g, 1)
    %h: f32[1] = aten::neg(%g)
    %back: f32[1] = aten::exp(%f)
    %large: f32[100000] = aten::repeat(%f, [100000])
    %sum: f32[] = aten::sum(%large)
    %y: f32[1] = aten::add.Tensor(%x, %sum)
    return %r, %h, %back, %y
  })",
              {{"f", at::randn({1})}, {"g", at::randn({1})}}, {"fold_constants"});
  EXPECT_EQ(graphs.text(), print_graph(*graphs.before));
  EXPECT_THAT(graphs.log, Contains(HasSubstr("too much memory")));
}

TEST(CommonSubexpressions, EqualThingsOnce) {
  const Rewritten graphs = rewrite(R"(graph(%x: user "x" f32[4]) {
    %a: f32[4] = aten::exp(%x)
    %b: f32[4] = aten::exp(%x)
    %c: f32[4] = aten::mul.Tensor(%a, 2)
    %d: f32[4] = aten::mul.Tensor(%b, 2)
    %e: f32[4] = aten::mul.Tensor(%b, 3)
    %r: f32[4] = aten::rand_like(%x)
    %s: f32[4] = aten::rand_like(%x)
    %y: f32[4] = aten::add.Tensor(%c, %d)
    %z: f32[4] = aten::add.Tensor(%y, %e)
    return %z
  })",
                                   {}, {"common_subexpressions"});
  EXPECT_EQ(graphs.count("aten::exp"), 1);
  EXPECT_EQ(graphs.count("aten::mul.Tensor"), 2);
  EXPECT_EQ(graphs.count("aten::rand_like"), 2);
  expect_same_results(graphs, {at::randn({4})});
}

TEST(CommonSubexpressions, ResultsOfACallStayApart) {
  const Rewritten graphs = rewrite(R"(graph(%x: user "x" f32[4]) {
    %a: f32[4] = aten::exp(%x)
    %b: f32[4] = aten::exp(%x)
    return %a, %b
  })",
                                   {}, {"common_subexpressions"});
  EXPECT_EQ(graphs.count("aten::exp"), 2);
}

TEST(FoldBatchNorm, IntoConvolutionAndLinear) {
  const TensorMap tensors = {{"w", at::randn({6, 3, 3, 3})}, {"b", at::randn({6})},
                             {"mean", at::randn({6})},       {"var", at::rand({6}) + 0.5},
                             {"gamma", at::randn({6})},      {"beta", at::randn({6})},
                             {"l", at::randn({6, 4})}};
  const Rewritten graphs = rewrite(
      R"(graph(%w: parameter "w" f32[6, 3, 3, 3], %b: parameter "b" f32[6], %mean: buffer "mean" f32[6], %var: buffer "var" f32[6], %gamma: parameter "gamma" f32[6], %beta: parameter "beta" f32[6], %l: parameter "l" f32[6, 4], %x: user "x" f32[2, 3, 8, 8], %z: user "z" f32[2, 4]) {
    %c: f32[2, 6, 6, 6] = aten::conv2d(%x, %w, %b)
    %n: f32[2, 6, 6, 6] = aten::batch_norm(%c, %gamma, %beta, %mean, %var, false, 0.1, 1e-05, true)
    %d: f32[2, 6] = aten::linear(%z, %l)
    %m: f32[2, 6], %u1: f32[0], %u2: f32[0] = aten::_native_batch_norm_legit_no_training(%d, %gamma, %beta, %mean, %var, 0.1, 1e-05)
    return %n, %m
  })",
      tensors, {"fold_batch_norm", "drop_unused"});
  EXPECT_EQ(graphs.after->nodes().size(), 2);
  EXPECT_EQ(graphs.tensors.size(), 4);
  expect_same_results(graphs, {at::randn({2, 3, 8, 8}), at::randn({2, 4})}, 1e-4);
}

TEST(FoldBatchNorm, NotInTraining) {
  const Rewritten graphs = rewrite(
      R"(graph(%l: parameter "l" f32[6, 4], %mean: buffer "mean" f32[6], %var: buffer "var" f32[6], %z: user "z" f32[2, 4]) {
    %d: f32[2, 6] = aten::linear(%z, %l)
    %n: f32[2, 6] = aten::batch_norm(%d, None, None, %mean, %var, true, 0.1, 1e-05, true)
    return %n
  })",
      {{"l", at::randn({6, 4})}, {"mean", at::randn({6})}, {"var", at::rand({6})}});
  EXPECT_EQ(graphs.count("aten::batch_norm"), 1);
}

// int8 linears as the passes before leave them.
TEST(QuantizeOnce, MakersWriteQuantizedRowsAndOthersAreQuantizedOnce) {
  const auto linear = [](const char* x) {
    return std::string("halftone::fused_linear(") + x +
           R"(, None, None, [%w, %s], None, None, format="int8", attributes=[7, 0], activation="none", symmetric=false))";
  };
  const std::string results = ": f32[2, 3, 4], %NAME_q: u8[2, 3, 4], %NAME_s: f32[6], %NAME_z: i32[6] = ";
  const auto results_of = [&](std::string name) {
    std::string text = "%" + name + results;
    for (size_t at; (at = text.find("NAME")) != std::string::npos;) text.replace(at, 4, name);
    return text;
  };
  const std::string text =
      R"(graph(%w: constant "w" i8[4, 4], %s: constant "s" f32[4], %g: parameter "g" f32[4], %x: user "x" f32[2, 3, 4]) {
    )" +
      results_of("a") + linear("%x") + "\n" + results_of("b") + linear("%x") + R"(
    %n: f32[2, 3, 4], %sum: f32[2, 3, 4], %nq: u8[2, 3, 4], %ns: f32[6], %nz: i32[6] = halftone::norm(%a, %b, %g, None, kind="rms", eps=1e-06, symmetric=true)
    )" +
      results_of("c") + linear("%n") + "\n" + results_of("d") + linear("%c") + "\nreturn %d\n}";
  const at::Tensor w = at::randint(-64, 65, {4, 4}).to(at::kChar);
  register_fused_operators();
  const Rewritten graphs =
      rewrite(text, {{"w", w}, {"s", at::rand({4}) * 0.02}, {"g", at::randn({4})}}, {"quantize_once"});
  EXPECT_EQ(graphs.count("halftone::quantize_rows"), 1);
  EXPECT_EQ(graphs.count("halftone::fused_linear"), 4);
  EXPECT_THAT(graphs.text(), HasSubstr("halftone::fused_linear(%nq, %ns, %nz, [%w, %s]"));
  EXPECT_THAT(graphs.text(), HasSubstr("halftone::fused_linear(%c_q, %c_s, %c_z, [%w, %s]"));
  EXPECT_THAT(graphs.text(), HasSubstr("kind=\"rms\", eps=1e-06, symmetric=false"));
  // The same integers; only a sum that is rounded in another order may move a byte of a later layer by one
  // step.
  const at::Tensor x = at::randn({2, 3, 4});
  EXPECT_NO_THROW(ops::int8_linear(x, w, graphs.tensors.at("s"), {}, 7, false));
  expect_same_results(graphs, {x}, 2e-2);
}

TEST(FoldZeroEmbedding, AddsTheRow) {
  const TensorMap tensors = {{"words", at::randn({9, 4})}, {"types", at::randn({2, 4})}};
  const Rewritten graphs = rewrite(
      R"(graph(%w: parameter "words" f32[9, 4], %t: parameter "types" f32[2, 4], %ids: user "ids" i64[s0, s1]) {
    %e: f32[s0, s1, 4] = aten::embedding(%w, %ids)
    %z: i64[s0, s1] = aten::zeros_like(%ids)
    %p: f32[s0, s1, 4] = aten::embedding(%t, %z)
    %y: f32[s0, s1, 4] = aten::add.Tensor(%e, %p)
    return %y
  })",
      tensors, {"fold_zero_embedding"});
  EXPECT_EQ(
      graphs.text(),
      R"(graph(%w: parameter "words" f32[9, 4], %t: parameter "types" f32[2, 4], %ids: user "ids" i64[s0, s1], %t_row: constant "compiled.t_row" f32[4]) {
  %e: f32[s0, s1, 4] = aten::embedding(%w, %ids)
  %y: f32[s0, s1, 4] = aten::add.Tensor(%e, %t_row)
  return %y
}
)");
  expect_same_results(graphs, {at::randint(9, {2, 3}, at::kLong)});
}

TEST(FoldZeroEmbedding, SeesZerosThroughViewsOfABuffer) {
  const char* text =
      R"(graph(%t: parameter "types" f32[2, 4], %z: buffer "zeros" i64[1, 16], %x: user "x" f32[s0, 5, 4]) {
    %n: int(s0) = aten::sym_size.int(%x, 0)
    %s: i64[1, 5; 16, 1] = aten::slice.Tensor(%z, 1, 0, 5)
    %i: i64[s0, 5; 0, 1] = aten::expand(%s, [%n, 5])
    %p: f32[s0, 5, 4] = aten::embedding(%t, %i)
    %y: f32[s0, 5, 4] = aten::add.Tensor(%p, %x)
    return %y
  })";
  const at::Tensor types = at::randn({2, 4});
  const Rewritten zeros =
      rewrite(text, {{"types", types}, {"zeros", at::zeros({1, 16}, at::kLong)}}, {"fold_zero_embedding"});
  EXPECT_EQ(zeros.count("aten::embedding"), 0) << zeros.text();
  expect_same_results(zeros, {at::randn({2, 5, 4})});
  const Rewritten ones =
      rewrite(text, {{"types", types}, {"zeros", at::ones({1, 16}, at::kLong)}}, {"fold_zero_embedding"});
  EXPECT_EQ(ones.text(), print_graph(*ones.before));
}

TEST(FoldZeroEmbedding, KeepsSumsThatWouldShrink) {
  const Rewritten graphs = rewrite(
      R"(graph(%t: parameter "types" f32[2, 4], %ids: user "ids" i64[s0, 3], %x: user "x" f32[3, 4]) {
    %z: i64[s0, 3] = aten::zeros_like(%ids)
    %p: f32[s0, 3, 4] = aten::embedding(%t, %z)
    %y: f32[s0, 3, 4] = aten::add.Tensor(%p, %x)
    return %y
  })",
      {{"types", at::randn({2, 4})}}, {"fold_zero_embedding"});
  EXPECT_EQ(graphs.text(), print_graph(*graphs.before));
}

}  // namespace
}  // namespace halftone::compiler
