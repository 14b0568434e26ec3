// fuse_conv, channels_last, fuse_conv_residual, fuse_conv_activation; batch norm behind convolutions.
#include "compiler/passes/test_support.h"

namespace halftone::compiler {
namespace {

using testing::Contains;
using testing::HasSubstr;

const std::vector<std::string> kConvPasses = {
    "fold_batch_norm",      "fuse_conv",      "channels_last", "fuse_conv_residual",
    "fuse_conv_activation", "clean_up_again", "drop_unused"};

TensorMap conv_weights() {
  at::manual_seed(11);
  return {{"w", at::randn({4, 4, 3, 3}) * 0.2},
          {"v", at::randn({4, 4, 1, 1}) * 0.4},
          {"b", at::randn({4})},
          {"g", at::rand({4}) + 0.5},
          {"m", at::randn({4})},
          {"s", at::rand({4}) + 0.5}};
}

TEST(FuseConv, OneFormAndACopyThatRestoresTheStrides) {
  const Rewritten graphs = rewrite(
      R"(graph(%w: parameter "w" f32[4, 4, 3, 3], %b: parameter "b" f32[4], %x: user "x" f32[s0, 4, 6, 5]) {
    %c: f32[s0, 4, 6, 5] = aten::conv2d(%x, %w, %b, [1, 1], [1, 1])  @ "stem" "Conv2d"
    return %c
  })",
      conv_weights(), {"fuse_conv"});
  EXPECT_EQ(
      graphs.text(),
      print_graph(*parse_graph(
          R"(graph(%w: parameter "w" f32[4, 4, 3, 3], %b: parameter "b" f32[4], %x: user "x" f32[s0, 4, 6, 5]) {
    %c_last: f32[s0, 4, 6, 5; 120, 1, 20, 4] = halftone::conv(%x, %w, %b, None, stride=[1, 1], padding=[1, 1], dilation=[1, 1], transposed=false, output_padding=[0, 0], groups=1, activation="none")  @ "stem" "Conv2d"
    %c: f32[s0, 4, 6, 5] = aten::contiguous(%c_last)  @ "stem" "Conv2d"
    return %c
  })")));
  for (const int64_t batch : {1, 3}) expect_same_results(graphs, {at::randn({batch, 4, 6, 5})}, 1e-5);
}

TEST(FuseConv, EverySpelling) {
  at::manual_seed(12);
  const TensorMap tensors = {
      {"w1", at::randn({6, 2, 3})}, {"w2", at::randn({6, 2, 3, 2})}, {"w3", at::randn({6, 2, 3, 2, 1})},
      {"t1", at::randn({4, 3, 3})}, {"t2", at::randn({4, 3, 3, 2})}, {"t3", at::randn({4, 3, 3, 2, 1})},
      {"b", at::randn({6})}};
  const Rewritten graphs = rewrite(
      R"(graph(%w1: parameter "w1" f32[6, 2, 3], %w2: parameter "w2" f32[6, 2, 3, 2], %w3: parameter "w3" f32[6, 2, 3, 2, 1], %t1: parameter "t1" f32[4, 3, 3], %t2: parameter "t2" f32[4, 3, 3, 2], %t3: parameter "t3" f32[4, 3, 3, 2, 1], %b: parameter "b" f32[6], %x: user "x" f32[2, 4, 7], %y: user "y" f32[2, 4, 7, 6], %z: user "z" f32[2, 4, 7, 6, 3]) {
    %a: f32[2, 6, 3] = aten::conv1d(%x, %w1, %b, [2], [1], [2], 2)
    %c: f32[2, 6, 7, 6] = aten::conv2d.padding(%y, %w2, %b, [1, 1], "same", [1, 1], 2)
    %d: f32[2, 6, 5, 5, 3] = aten::conv3d(%z, %w3, None, [1], [0], [1], 2)
    %e: f32[2, 6, 5, 5] = aten::convolution(%y, %w2, %b, [1, 1], [0, 0], [1, 1], false, [0, 0], 2)
    %f: f32[2, 6, 15] = aten::conv_transpose1d(%x, %t1, %b, [2], [0], [0], 2)
    %h: f32[2, 6, 13, 10] = aten::conv_transpose2d.input(%y, %t2, None, [2, 2], [1, 1], [0, 0], 2)
    %i: f32[2, 6, 9, 7, 3] = aten::convolution(%z, %t3, %b, [1, 1, 1], [0, 0, 0], [1, 1, 1], true, [0, 0, 0], 2)
    return %a, %c, %d, %e, %f, %h, %i
  })",
      tensors, {"fuse_conv"});
  EXPECT_EQ(graphs.count("halftone::conv"), 7) << graphs.text();
  EXPECT_THAT(graphs.text(), HasSubstr("padding=[1, 0, 1, 1]"));
  expect_same_results(graphs, {at::randn({2, 4, 7}), at::randn({2, 4, 7, 6}), at::randn({2, 4, 7, 6, 3})},
                      1e-4);
}

TEST(FuseConv, ZerosInFrontBecomePadding) {
  at::manual_seed(13);
  const Rewritten graphs = rewrite(
      R"(graph(%w: parameter "w" f32[6, 4, 3], %x: user "x" f32[2, 4, 9]) {
    %p: f32[2, 4, 13] = aten::constant_pad_nd(%x, [4, 0])
    %c: f32[2, 6, 9] = aten::conv1d(%p, %w, None, [1], [0], [2])
    %one: f32[2, 4, 13] = aten::constant_pad_nd(%x, [4, 0], 1)
    %d: f32[2, 6, 9] = aten::conv1d(%one, %w, None, [1], [0], [2])
    return %c, %d
  })",
      {{"w", at::randn({6, 4, 3})}}, {"fuse_conv"});
  EXPECT_EQ(graphs.count("aten::constant_pad_nd"), 1);
  EXPECT_THAT(graphs.text(), HasSubstr("padding=[4, 0]"));
  expect_same_results(graphs, {at::randn({2, 4, 9})}, 1e-5);
}

TEST(FuseConv, LeavesWhatItCannotHave) {
  const Rewritten graphs = rewrite(
      R"(graph(%w: parameter "w" f32[4, 4, 3, 3], %x: user "x" f32[1, 4, 6, 5], %k: user "k" f32[4, 4, 3, 3]) {
    %c: f32[1, 4, 4, 3] = aten::conv2d(%x, %k)
    %o: f32[4, 6, 5] = aten::select.int(%x, 0, 0)
    %d: f32[4, 4, 3] = aten::conv2d(%o, %w)
    return %c, %d
  })",
      conv_weights());
  EXPECT_EQ(graphs.count("aten::conv2d"), 2);
  EXPECT_THAT(graphs.log, Contains(HasSubstr("its weight is computed or written")));
  EXPECT_THAT(graphs.log, Contains(HasSubstr("its input is no batch")));
  expect_same_results(graphs, {at::randn({1, 4, 6, 5}), at::randn({4, 4, 3, 3})}, 1e-5);
}

constexpr const char* kResidualBlock =
    R"(graph(%w: parameter "w" f32[4, 4, 3, 3], %v: parameter "v" f32[4, 4, 1, 1], %b: parameter "b" f32[4], %g: parameter "g" f32[4], %m: buffer "m" f32[4], %s: buffer "s" f32[4], %x: user "x" f32[s0, 4, 8, 8]) {
    %c: f32[s0, 4, 8, 8] = aten::conv2d(%x, %w, None, [1, 1], [1, 1])  @ "conv1" "Conv2d"
    %n: f32[s0, 4, 8, 8] = aten::batch_norm(%c, %g, %b, %m, %s, false, 0.1, 1e-05, true)
    %r: f32[s0, 4, 8, 8] = aten::relu(%n)
    %p: f32[s0, 4, 4, 4] = aten::max_pool2d(%r, [3, 3], [2, 2], [1, 1])
    %d: f32[s0, 4, 4, 4] = aten::conv2d(%p, %v, %b)  @ "conv2" "Conv2d"
    %a: f32[s0, 4, 4, 4] = aten::add.Tensor(%d, %p)
    %e: f32[s0, 4, 4, 4] = aten::relu(%a)
    %q: f32[s0, 4, 1, 1] = aten::adaptive_avg_pool2d(%e, [1, 1])
    %f: f32[s0, 4] = aten::flatten.using_ints(%q, 1)
    return %f
  })";

TEST(ChannelsLast, NothingIsCopiedBetweenConvolutions) {
  const Rewritten graphs = rewrite(kResidualBlock, conv_weights(), kConvPasses);
  EXPECT_EQ(graphs.count("halftone::conv"), 2) << graphs.text();
  EXPECT_EQ(graphs.count("aten::contiguous"), 0) << graphs.text();
  EXPECT_EQ(graphs.after->nodes().size(), 5) << graphs.text();
  EXPECT_THAT(graphs.text(), HasSubstr("%p_last: f32[s0, 4, 4, 4; 64, 1, 16, 4] = aten::max_pool2d"));
  EXPECT_THAT(graphs.text(), HasSubstr("halftone::conv(%p_last, %v, %b, %p_last,"));
  for (const int64_t batch : {1, 3}) expect_same_results(graphs, {at::randn({batch, 4, 8, 8})}, 1e-5);
}

TEST(ChannelsLast, OthersGetTheStridesTheyHad) {
  const Rewritten graphs = rewrite(
      R"(graph(%w: parameter "w" f32[4, 4, 3, 3], %v: parameter "v" f32[4, 8, 1, 1], %x: user "x" f32[2, 4, 6, 5], %y: user "y" f32[2, 4, 6, 5]) {
    %c: f32[2, 4, 6, 5] = aten::conv2d(%x, %w, None, [1, 1], [1, 1])
    %t: f32[2, 4, 6, 5] = aten::tanh(%c)
    %k: f32[2, 8, 6, 5] = aten::cat([%t, %y], 1)
    %d: f32[2, 4, 6, 5] = aten::conv2d(%k, %v)
    %u: f32[240] = aten::view(%d, [240])
    %z: f32[2, 4, 6, 5] = aten::mul.Tensor(%d, %y)
    return %t, %u, %z
  })",
      {{"w", at::randn({4, 4, 3, 3})}, {"v", at::randn({4, 8, 1, 1})}}, kConvPasses);
  EXPECT_EQ(graphs.count("halftone::conv"), 2);
  EXPECT_EQ(graphs.count("aten::contiguous"), 3)
      << graphs.text();  // %y to the front; %t and %d to the caller
  expect_same_results(graphs, {at::randn({2, 4, 6, 5}), at::randn({2, 4, 6, 5})}, 1e-5);
}

TEST(ChannelsLast, GatesBroadcastOverPixels) {
  const Rewritten graphs = rewrite(
      R"(graph(%w: parameter "w" f32[4, 4, 3, 3], %v: parameter "v" f32[4, 4, 1, 1], %x: user "x" f32[s0, 4, 6, 5]) {
    %c: f32[s0, 4, 6, 5] = aten::conv2d(%x, %w, None, [1, 1], [1, 1])
    %h: f32[s0, 4, 6, 5] = aten::hardswish(%c)
    %m: f32[s0, 4, 1, 1] = aten::mean.dim(%h, [2, 3], true)
    %d: f32[s0, 4, 1, 1] = aten::conv2d(%m, %v)
    %s: f32[s0, 4, 1, 1] = aten::hardsigmoid(%d)
    %g: f32[s0, 4, 6, 5] = aten::mul.Tensor(%h, %s)
    %e: f32[s0, 4, 6, 5] = aten::conv2d(%g, %v)
    return %e
  })",
      conv_weights(), kConvPasses);
  EXPECT_EQ(graphs.count("halftone::conv"), 3);
  EXPECT_EQ(graphs.count("aten::contiguous"), 1) << graphs.text();
  EXPECT_EQ(graphs.after->nodes().size(), 6) << graphs.text();
  expect_same_results(graphs, {at::randn({2, 4, 6, 5})}, 1e-5);
}

TEST(ChannelsLast, RowsOfPixelsAreViews) {
  const Rewritten graphs = rewrite(
      R"(graph(%w: parameter "w" f32[4, 4, 3, 3], %v: parameter "l" f32[6, 4], %x: user "x" f32[2, 4, 6, 5]) {
    %c: f32[2, 4, 6, 5] = aten::conv2d(%x, %w, None, [1, 1], [1, 1])
    %f: f32[2, 4, 30] = aten::flatten.using_ints(%c, 2)
    %t: f32[2, 30, 4; 120, 1, 30] = aten::transpose.int(%f, 1, 2)
    %y: f32[2, 30, 6] = aten::linear(%t, %v)
    %d: f32[2, 4, 6, 5] = aten::conv2d(%c, %w, None, [1, 1], [1, 1])
    %p: f32[2, 6, 5, 4; 120, 5, 1, 30] = aten::permute(%d, [0, 2, 3, 1])
    %z: f32[2, 6, 5, 6] = aten::linear(%p, %v)
    return %y, %z
  })",
      {{"w", at::randn({4, 4, 3, 3})}, {"l", at::randn({6, 4})}}, kConvPasses);
  EXPECT_EQ(graphs.count("aten::contiguous"), 0) << graphs.text();
  EXPECT_THAT(graphs.text(), HasSubstr("%t: f32[2, 30, 4] = aten::transpose.int"));
  EXPECT_THAT(graphs.text(), HasSubstr("%p: f32[2, 6, 5, 4] = aten::permute"));
  expect_same_results(graphs, {at::randn({2, 4, 6, 5})}, 1e-5);
}

// Batch norm in training writes its statistics, though its schema does not say so: it must not run twice.
TEST(ChannelsLast, StatisticsAreUpdatedOnce) {
  const Rewritten graphs = rewrite(
      R"(graph(%w: parameter "w" f32[4, 4, 3, 3], %m: buffer "m" f32[4], %s: buffer "s" f32[4], %x: user "x" f32[2, 4, 6, 5]) {
    %c: f32[2, 4, 4, 3] = aten::conv2d(%x, %w)
    %n: f32[2, 4, 4, 3] = aten::batch_norm(%c, None, None, %m, %s, true, 0.3, 1e-05, true)
    %y: f32[4] = aten::mul.Tensor(%m, 2.0)
    return %n, %y
  })",
      conv_weights(), kConvPasses);
  EXPECT_EQ(graphs.count("aten::batch_norm"), 1) << graphs.text();
  expect_same_results(graphs, {at::randn({2, 4, 6, 5})}, 1e-5);
}

TEST(FuseConvActivation, EveryActivation) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"aten::relu(%c)", "activation=\"relu\""},
      {"aten::relu6(%c)", "activation=\"clamp\", lo=0.0, hi=6.0"},
      {"aten::hardtanh(%c, -2.0, 0.5)", "activation=\"clamp\", lo=-2.0, hi=0.5"},
      {"aten::clamp(%c, 0.1)", "activation=\"clamp\", lo=0.1, hi=inf"},
      {"aten::clamp_min(%c, 0)", "activation=\"relu\""},
      {"aten::silu(%c)", "activation=\"silu\""},
      {"aten::gelu(%c)", "activation=\"gelu\""},
      {"aten::gelu(%c, approximate=\"tanh\")", "activation=\"gelu_tanh\""},
      {"aten::sigmoid(%c)", "activation=\"sigmoid\""},
      {"aten::hardswish(%c)", "activation=\"hardswish\""},
      {"aten::hardsigmoid(%c)", "activation=\"hardsigmoid\""}};
  for (const auto& [call, expected] : cases) {
    const Rewritten graphs = rewrite(
        R"(graph(%w: parameter "w" f32[4, 4, 3, 3], %x: user "x" f32[2, 4, 6, 5]) {
    %c: f32[2, 4, 4, 3] = aten::conv2d(%x, %w)
    %y: f32[2, 4, 4, 3] = )" +
            call + "\n    return %y\n  }",
        conv_weights(), kConvPasses);
    EXPECT_THAT(graphs.text(), HasSubstr(expected));
    EXPECT_EQ(graphs.after->nodes().size(), 2);
    expect_same_results(graphs, {at::randn({2, 4, 6, 5})}, 1e-5);
  }
}

TEST(FuseConvActivation, NotBeforeASumOrWhereOthersRead) {
  const Rewritten graphs = rewrite(
      R"(graph(%w: parameter "w" f32[4, 4, 1, 1], %x: user "x" f32[2, 4, 6, 5]) {
    %c: f32[2, 4, 6, 5] = aten::conv2d(%x, %w)
    %s: f32[2, 4, 6, 5] = aten::silu(%c)
    %d: f32[2, 4, 6, 5] = aten::conv2d(%s, %w)
    %e: f32[2, 4, 6, 5] = aten::silu(%d)
    %a: f32[2, 4, 6, 5] = aten::add.Tensor(%s, %e)
    %f: f32[2, 4, 6, 5] = aten::conv2d(%a, %w)
    %h: f32[2, 4, 6, 5] = aten::relu(%f)
    %i: f32[2, 4, 6, 5] = aten::add.Tensor(%f, %h)
    return %i
  })",
      {{"w", at::randn({4, 4, 1, 1})}}, kConvPasses);
  EXPECT_EQ(graphs.count("aten::silu"), 0);
  EXPECT_EQ(graphs.count("aten::add.Tensor"), 2);
  EXPECT_EQ(graphs.count("aten::relu"), 1);
  expect_same_results(graphs, {at::randn({2, 4, 6, 5})}, 1e-4);
}

TEST(FoldBatchNorm, TransposedConvolutionsInGroups) {
  at::manual_seed(14);
  const Rewritten graphs = rewrite(
      R"(graph(%w: parameter "w" f32[4, 3, 2, 2], %g: parameter "g" f32[6], %b: parameter "b" f32[6], %m: buffer "m" f32[6], %s: buffer "s" f32[6], %x: user "x" f32[2, 4, 5, 5]) {
    %c: f32[2, 6, 10, 10] = aten::conv_transpose2d.input(%x, %w, None, [2, 2], [0, 0], [0, 0], 2)
    %n: f32[2, 6, 10, 10] = aten::batch_norm(%c, %g, %b, %m, %s, false, 0.1, 1e-05, true)
    return %n
  })",
      {{"w", at::randn({4, 3, 2, 2})},
       {"g", at::randn({6})},
       {"b", at::randn({6})},
       {"m", at::randn({6})},
       {"s", at::rand({6}) + 0.5}},
      {"fold_batch_norm"});
  EXPECT_EQ(graphs.count("aten::batch_norm"), 0);
  expect_same_results(graphs, {at::randn({2, 4, 5, 5})}, 1e-4);
}

}  // namespace
}  // namespace halftone::compiler
