#include "quant/static_int8/test_support.h"

namespace halftone {
namespace {

constexpr const char* kConv = R"(
graph(%w: parameter "conv.weight" i8[8, 4, 3, 3], %s: constant "conv.scales" f32[8], %z: constant "conv.zero_points" i32[8],
      %b: parameter "conv.bias" f32[8], %x: user "x" f32[2, 4, 9, 7]) {
  %q: u8[2, 4, 9, 7] = halftone::quantize_per_tensor(%x, 0.05, 60, 0, 127, dtype:u8)
  %d: f32[2, 4, 9, 7] = halftone::dequantize_per_tensor(%q, 0.05, 60)
  %dw: f32[8, 4, 3, 3] = halftone::dequantize_per_channel(%w, %s, %z, 0)
  %y: f32[2, 8, 5, 4] = aten::conv2d(%d, %dw, %b, [2, 2], [1, 1])  @ "conv" "Conv2d"
  %r: f32[2, 8, 5, 4] = aten::relu(%y)
  %yq: u8[2, 8, 5, 4] = halftone::quantize_per_tensor(%r, 0.03, 10, 0, 255, dtype:u8)
  %out: f32[2, 8, 5, 4] = halftone::dequantize_per_tensor(%yq, 0.03, 10)
  return %out
})";

TensorMap conv_tensors() {
  return {{"conv.weight", random_weight({8, 4, 3, 3})},
          {"conv.scales", random_scale(8)},
          {"conv.zero_points", zero_points(8)},
          {"conv.bias", at::randn({8})}};
}

TEST(LowerProducts, ConvWithReluBecomesOneOperator) {
  at::manual_seed(1);
  const LowerResult result = expect_lowered(kConv, conv_tensors(), {at::randn({2, 4, 9, 7})}, 0.03);
  EXPECT_EQ(
      print_graph(result.module->graph()),
      R"(graph(%w: parameter "conv.weight" i8[8, 4, 3, 3], %s: constant "conv.scales" f32[8], %b: parameter "conv.bias" f32[8], %x: user "x" f32[2, 4, 9, 7]) {
  %q: u8[2, 4, 9, 7] = halftone::quantize_per_tensor(%x, 0.05, 60, 0, 127, dtype:u8)
  %yq: u8[2, 8, 5, 4; 160, 1, 32, 8] = halftone::int8_conv(%q, %w, %s, %b, None, stride=[2, 2], padding=[1, 1], dilation=[1, 1], transposed=false, output_padding=[0, 0], groups=1, x_scale=0.05000000074505806, x_zero_point=60, x_max=127, out_scale=0.029999999329447746, out_zero_point=10, out_min=10, out_max=255)  @ "conv" "Conv2d"
  %out: f32[2, 8, 5, 4; 160, 1, 32, 8] = halftone::dequantize_per_tensor(%yq, 0.03, 10)
  %out_contiguous: f32[2, 8, 5, 4] = aten::contiguous(%out)
  return %out_contiguous
}
)");
  EXPECT_EQ(result.report.operators, (std::map<std::string, size_t>{{"halftone::int8_conv", 1}}));
  EXPECT_FALSE(result.module->tensors()->contains("conv.zero_points"));
}

TEST(LowerProducts, ModuleThatWasGivenStaysAsItWas) {
  at::manual_seed(2);
  const auto reference = reference_module(kConv, conv_tensors());
  const std::string before = print_graph(reference->graph());
  const size_t tensors = reference->tensors()->size();
  lower(*reference);
  EXPECT_EQ(print_graph(reference->graph()), before);
  EXPECT_EQ(reference->tensors()->size(), tensors);
}

TEST(LowerProducts, ConvTakesResidual) {
  at::manual_seed(3);
  const char* text = R"(
graph(%w: parameter "w" i8[4, 4, 1, 1], %s: constant "s" f32[4], %z: constant "z" i32[4], %x: user "x" f32[1, 4, 6, 6]) {
  %q: u8[1, 4, 6, 6] = halftone::quantize_per_tensor(%x, 0.02, 128, 0, 255, dtype:u8)
  %d: f32[1, 4, 6, 6] = halftone::dequantize_per_tensor(%q, 0.02, 128)
  %dw: f32[4, 4, 1, 1] = halftone::dequantize_per_channel(%w, %s, %z, 0)
  %y: f32[1, 4, 6, 6] = aten::conv2d(%d, %dw)
  %d2: f32[1, 4, 6, 6] = halftone::dequantize_per_tensor(%q, 0.02, 128)
  %sum: f32[1, 4, 6, 6] = aten::add.Tensor(%d2, %y)
  %r: f32[1, 4, 6, 6] = aten::relu(%sum)
  %yq: u8[1, 4, 6, 6] = halftone::quantize_per_tensor(%r, 0.04, 0, 0, 127, dtype:u8)
  %out: f32[1, 4, 6, 6] = halftone::dequantize_per_tensor(%yq, 0.04, 0)
  return %out
})";
  const TensorMap tensors = {
      {"w", random_weight({4, 4, 1, 1})}, {"s", random_scale(4)}, {"z", zero_points(4)}};
  const LowerResult result = expect_lowered(text, tensors, {at::randn({1, 4, 6, 6})}, 0.04);
  const std::string printed = print_graph(result.module->graph());
  EXPECT_THAT(printed, testing::HasSubstr("int8_conv(%q, %w, %s, None, %q, "));
  EXPECT_THAT(printed, testing::HasSubstr("residual_zero_point=128"));
  EXPECT_EQ(count_nodes(result.module->graph(), "aten::add.Tensor"), 0U);
}

TEST(LowerProducts, TransposedConvWithGroupsRepeatsItsScales) {
  at::manual_seed(4);
  const char* text = R"(
graph(%w: parameter "up.weight" i8[6, 2, 3, 3], %s: constant "s" f32[2], %z: constant "z" i32[2], %x: user "x" f32[2, 6, 5, 5]) {
  %q: u8[2, 6, 5, 5] = halftone::quantize_per_tensor(%x, 0.02, 128, 0, 255, dtype:u8)
  %d: f32[2, 6, 5, 5] = halftone::dequantize_per_tensor(%q, 0.02, 128)
  %dw: f32[6, 2, 3, 3] = halftone::dequantize_per_channel(%w, %s, %z, 1)
  %y: f32[2, 6, 10, 10] = aten::conv_transpose2d.input(%d, %dw, None, [2, 2], [1, 1], [1, 1], 3)
  %yq: u8[2, 6, 10, 10] = halftone::quantize_per_tensor(%y, 0.05, 120, 0, 255, dtype:u8)
  %out: f32[2, 6, 10, 10] = halftone::dequantize_per_tensor(%yq, 0.05, 120)
  return %out
})";
  const TensorMap tensors = {
      {"up.weight", random_weight({6, 2, 3, 3})}, {"s", random_scale(2)}, {"z", zero_points(2)}};
  const LowerResult result = expect_lowered(text, tensors, {at::randn({2, 6, 5, 5})}, 0.05);
  EXPECT_EQ(result.module->tensor("up.weight_scale").sizes(), at::IntArrayRef({6}));
}

TEST(LowerProducts, LinearWithoutObservedOutputWritesFloats) {
  at::manual_seed(5);
  const char* text = R"(
graph(%w: parameter "fc.weight" i8[10, 32], %b: parameter "fc.bias" f32[10], %x: user "x" f32[3, 5, 32]) {
  %q: u8[3, 5, 32] = halftone::quantize_per_tensor(%x, 0.02, 100, 0, 255, dtype:u8)
  %d: f32[3, 5, 32] = halftone::dequantize_per_tensor(%q, 0.02, 100)
  %dw: f32[10, 32] = halftone::dequantize_per_tensor(%w, 0.01, 0)
  %y: f32[3, 5, 10] = aten::linear(%d, %dw, %b)
  return %y
})";
  const TensorMap tensors = {{"fc.weight", random_weight({10, 32})}, {"fc.bias", at::randn({10})}};
  const LowerResult result = expect_lowered(text, tensors, {at::randn({3, 5, 32})}, 1e-2, 1000);
  EXPECT_THAT(print_graph(result.module->graph()), testing::HasSubstr("float_output=true"));
  EXPECT_EQ(count_nodes(result.module->graph(), "halftone::dequantize_per_tensor"), 0U);
}

TEST(LowerProducts, KindsOfConvolutionAgreeWithTheReference) {
  struct Case {
    const char *name, *x, *weight, *out, *call;
    std::vector<int64_t> x_sizes, weight_sizes;
  };
  const Case cases[] = {
      {"conv1d", "[2, 6, 11]", "[4, 6, 3]", "[2, 4, 9]", "conv1d(%d, %dw)", {2, 6, 11}, {4, 6, 3}},
      {"depthwise",
       "[1, 8, 7, 6]",
       "[8, 1, 3, 3]",
       "[1, 8, 7, 6]",
       "conv2d(%d, %dw, None, [1, 1], [1, 1], [1, 1], 8)",
       {1, 8, 7, 6},
       {8, 1, 3, 3}},
      {"dilated",
       "[1, 3, 9, 9]",
       "[5, 3, 3, 3]",
       "[1, 5, 9, 9]",
       "conv2d(%d, %dw, None, [1, 1], [2, 2], [2, 2])",
       {1, 3, 9, 9},
       {5, 3, 3, 3}},
      {"same",
       "[1, 3, 9, 9]",
       "[5, 3, 3, 3]",
       "[1, 5, 9, 9]",
       "conv2d.padding(%d, %dw, None, [1, 1], \"same\")",
       {1, 3, 9, 9},
       {5, 3, 3, 3}},
      {"conv3d",
       "[1, 4, 5, 6, 7]",
       "[4, 2, 2, 3, 3]",
       "[1, 4, 4, 4, 5]",
       "conv3d(%d, %dw, None, [1, 1, 1], [0, 0, 0], [1, 1, 1], 2)",
       {1, 4, 5, 6, 7},
       {4, 2, 2, 3, 3}},
      {"convolution",
       "[1, 4, 6, 6]",
       "[2, 4, 3, 3]",
       "[1, 2, 4, 4]",
       "convolution(%d, %dw, None, [1, 1], [0, 0], [1, 1], false, [0, 0], 1)",
       {1, 4, 6, 6},
       {2, 4, 3, 3}}};
  at::manual_seed(6);
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const std::string text = fmt::format(
        R"(graph(%w: parameter "w" i8{1}, %x: user "x" f32{0}) {{
  %q: u8{0} = halftone::quantize_per_tensor(%x, 0.03, 90, 0, 255, dtype:u8)
  %d: f32{0} = halftone::dequantize_per_tensor(%q, 0.03, 90)
  %dw: f32{1} = halftone::dequantize_per_tensor(%w, 0.01, 0)
  %y: f32{2} = aten::{3}
  %yq: u8{2} = halftone::quantize_per_tensor(%y, 0.06, 130, 0, 255, dtype:u8)
  %out: f32{2} = halftone::dequantize_per_tensor(%yq, 0.06, 130)
  return %out
}})",
        c.x, c.weight, c.out, c.call);
    expect_lowered(text, {{"w", random_weight(c.weight_sizes)}}, {at::randn(c.x_sizes)}, 0.06);
  }
}

TEST(LowerProducts, WeightsThatNoKernelTakesAreListed) {
  at::manual_seed(7);
  TensorMap tensors = conv_tensors();
  tensors["conv.zero_points"] = at::ones({8}, at::kInt);
  const auto reference = reference_module(kConv, tensors);
  const LowerResult result = lower(*reference);
  ASSERT_EQ(result.report.kept.size(), 2U);  // the convolution, and the relu that its result goes through
  EXPECT_EQ(result.report.kept[0].layer, "conv");
  EXPECT_EQ(result.report.kept[0].reason, "its weight has zero points other than 0");
  EXPECT_EQ(compare_runs(reference, result.module, {at::randn({2, 4, 9, 7})}, 0.03).differing, 0);
  expect_error(ErrorCode::kUnsupported, {"conv", "zero points other than 0"},
               [&] { lower(*reference, {.require_all = true}); });
}

}  // namespace
}  // namespace halftone
