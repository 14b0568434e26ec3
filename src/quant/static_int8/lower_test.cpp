#include "quant/static_int8/test_support.h"

namespace halftone {
namespace {

/// x quantized twice with different scales, then `body`, then %out dequantized from %yq.
std::string between(std::string_view sizes, std::string_view body, std::string_view out_sizes,
                    std::string_view y = "%y") {
  return fmt::format(R"(graph(%x: user "x" f32{0}) {{
  %q: u8{0} = halftone::quantize_per_tensor(%x, 0.03, 90, 0, 255, dtype:u8)
  %d: f32{0} = halftone::dequantize_per_tensor(%q, 0.03, 90)
  %n: f32{0} = aten::neg(%x)
  %q2: u8{0} = halftone::quantize_per_tensor(%n, 0.05, 20, 0, 127, dtype:u8)
  %d2: f32{0} = halftone::dequantize_per_tensor(%q2, 0.05, 20)
{1}
  %yq: u8{2} = halftone::quantize_per_tensor({3}, 0.04, 70, 0, 255, dtype:u8)
  %out: f32{2} = halftone::dequantize_per_tensor(%yq, 0.04, 70)
  return %out
}})",
                     sizes, body, out_sizes, y);
}

LowerResult expect_one(std::string_view target, std::string_view sizes, std::string_view body,
                       std::string_view out_sizes, at::IntArrayRef input, int64_t rarity) {
  at::manual_seed(11);
  const std::string text = between(sizes, body, out_sizes);
  const auto reference = reference_module(text);
  const LowerResult result = lower(*reference);
  const Difference difference = compare_runs(reference, result.module, {at::randn(input)}, 0.04);
  EXPECT_LE(difference.largest, rarity == 0 ? 0.0 : 1.001);
  EXPECT_LE(difference.differing, rarity == 0 ? 0 : difference.elements / rarity)
      << "of " << difference.elements;
  EXPECT_EQ(count_nodes(result.module->graph(), target), 1U) << print_graph(result.module->graph());
  EXPECT_EQ(count_nodes(result.module->graph(), "halftone::dequantize_per_tensor"), 1U)
      << print_graph(result.module->graph());
  return result;
}

constexpr const char* kImage = "[2, 3, 6, 5]";
const std::vector<int64_t> kImageSizes = {2, 3, 6, 5};

TEST(Lower, AddAndMulTakeReluAndBroadcast) {
  expect_one("halftone::int8_add", kImage,
             "  %a: f32[2, 3, 6, 5] = aten::add.Tensor(%d, %d2)\n  %y: f32[2, 3, 6, 5] = aten::relu(%a)",
             kImage, kImageSizes, 0);
  expect_one("halftone::int8_mul", kImage, "  %y: f32[2, 3, 6, 5] = aten::mul.Tensor(%d, %d2)", kImage,
             kImageSizes, 0);
  expect_one("halftone::int8_mul", kImage,
             "  %one: f32[2, 3, 1, 1; ?] = aten::slice.Tensor(%d2, 2, 0, 1)\n"
             "  %gate: f32[2, 3, 1, 1; ?] = aten::slice.Tensor(%one, 3, 0, 1)\n"
             "  %y: f32[2, 3, 6, 5] = aten::mul.Tensor(%d, %gate)",
             kImage, kImageSizes, 0);
}

TEST(Lower, PoolingRunsOnIntegers) {
  expect_one("halftone::int8_avg_pool", kImage,
             "  %y: f32[2, 3, 3, 3] = aten::avg_pool2d(%d, [3, 3], [2, 2], [1, 1])", "[2, 3, 3, 3]",
             kImageSizes, 20);
  expect_one("halftone::int8_adaptive_avg_pool", kImage,
             "  %y: f32[2, 3, 2, 2] = aten::adaptive_avg_pool2d(%d, [2, 2])", "[2, 3, 2, 2]", kImageSizes,
             20);
  expect_one("halftone::int8_adaptive_avg_pool", kImage, "  %y: f32[2, 3] = aten::mean.dim(%d, [-1, -2])",
             "[2, 3]", kImageSizes, 5);
  const LowerResult result = expect_one(
      "halftone::int8_max_pool", kImage,
      "  %m: f32[2, 3, 3, 3] = aten::max_pool2d(%d, [3, 3], [2, 2], [1, 1])\n  %y: f32[2, 3, 3, 3] = "
      "aten::sigmoid(%m)",
      "[2, 3, 3, 3]", kImageSizes, 0);
  EXPECT_EQ(count_nodes(result.module->graph(), "halftone::int8_lookup"), 1U);
}

TEST(Lower, InterpolationRunsOnIntegers) {
  expect_one("halftone::int8_interpolate", kImage,
             "  %y: f32[2, 3, 12, 10] = aten::upsample_bilinear2d.vec(%d, None, false, [2.0, 2.0])",
             "[2, 3, 12, 10]", kImageSizes, 20);
  expect_one("halftone::int8_interpolate", kImage,
             "  %y: f32[2, 3, 12, 10] = aten::upsample_nearest2d.vec(%d, None, [2.0, 2.0])", "[2, 3, 12, 10]",
             kImageSizes, 0);
}

TEST(Lower, CatRequantizesItsParts) {
  expect_one("halftone::int8_cat", kImage, "  %y: f32[2, 6, 6, 5] = aten::cat([%d, %d2], 1)", "[2, 6, 6, 5]",
             kImageSizes, 0);
  expect_one("halftone::int8_cat", kImage, "  %y: f32[2, 3, 6, 10] = aten::cat([%d, %d2], -1)",
             "[2, 3, 6, 10]", kImageSizes, 0);
  expect_one("halftone::int8_cat", "[4, 6]", "  %y: f32[4, 12] = aten::cat([%d, %d2], 1)", "[4, 12]", {4, 6},
             0);
  // Parts of one scale are joined as they are, and requantized once.
  const LowerResult same =
      expect_one("halftone::int8_cat", kImage, "  %y: f32[2, 6, 6, 5] = aten::cat([%d, %d], 1)",
                 "[2, 6, 6, 5]", kImageSizes, 0);
  EXPECT_EQ(count_nodes(same.module->graph(), "halftone::int8_lookup"), 1U);
}

TEST(Lower, FunctionsOfOneElementBecomeTables) {
  for (const char* function : {"aten::sigmoid(%d)", "aten::hardswish(%d)", "aten::gelu(%d)", "aten::tanh(%d)",
                               "aten::clamp(%d, -0.5, 1.0)", "aten::add.Tensor(%d, 3.0)"}) {
    SCOPED_TRACE(function);
    expect_one("halftone::int8_lookup", kImage, fmt::format("  %y: f32[2, 3, 6, 5] = {}", function), kImage,
               kImageSizes, 0);
  }
  at::manual_seed(18);
  const char* prelu = R"(
graph(%s: parameter "slope" f32[1], %x: user "x" f32[2, 6]) {
  %q: u8[2, 6] = halftone::quantize_per_tensor(%x, 0.03, 90, 0, 255, dtype:u8)
  %d: f32[2, 6] = halftone::dequantize_per_tensor(%q, 0.03, 90)
  %y: f32[2, 6] = aten::prelu(%d, %s)
  %yq: u8[2, 6] = halftone::quantize_per_tensor(%y, 0.03, 60, 0, 255, dtype:u8)
  %out: f32[2, 6] = halftone::dequantize_per_tensor(%yq, 0.03, 60)
  return %out
})";
  expect_lowered(prelu, {{"slope", at::full({1}, 0.25)}}, {at::randn({2, 6})}, 0.03);
  // A chain is one table: x · relu6(x + 3) / 6 without the product.
  expect_one("halftone::int8_lookup", kImage,
             "  %a: f32[2, 3, 6, 5] = aten::add.Tensor(%d, 3.0)\n  %b: f32[2, 3, 6, 5] = aten::relu6(%a)\n"
             "  %y: f32[2, 3, 6, 5] = aten::div.Tensor(%b, 6.0)",
             kImage, kImageSizes, 0);
}

TEST(Lower, WhatMovesElementsMovesIntegers) {
  const char* text = R"(
graph(%x: user "x" f32[2, 3, 4, 4]) {
  %q: u8[2, 3, 4, 4] = halftone::quantize_per_tensor(%x, 0.03, 90, 0, 255, dtype:u8)
  %d: f32[2, 3, 4, 4] = halftone::dequantize_per_tensor(%q, 0.03, 90)
  %m: f32[2, 3, 2, 2] = aten::max_pool2d(%d, [2, 2])
  %mq: u8[2, 3, 2, 2] = halftone::quantize_per_tensor(%m, 0.03, 90, 0, 255, dtype:u8)
  %md: f32[2, 3, 2, 2] = halftone::dequantize_per_tensor(%mq, 0.03, 90)
  %p: f32[2, 3, 4, 4] = aten::constant_pad_nd(%md, [1, 1, 1, 1], 0.0)
  %parts: list = aten::split.Tensor(%p, 2, 2)
  %a: f32[2, 3, 2, 4; 48, 16, 4, 1], %b: f32[2, 3, 2, 4; 48, 16, 4, 1] = builtin::unpack(%parts)
  %c: f32[2, 3, 4, 4] = aten::cat([%b, %a], 2)
  %v: f32[2, 48] = aten::view(%c, [2, 48])
  %vq: u8[2, 48] = halftone::quantize_per_tensor(%v, 0.03, 90, 0, 255, dtype:u8)
  %out: f32[2, 48] = halftone::dequantize_per_tensor(%vq, 0.03, 90)
  return %out
})";
  at::manual_seed(12);
  const auto reference = reference_module(text);
  const LowerResult result = lower(*reference);
  EXPECT_TRUE(result.report.kept.empty()) << result.report.to_text();
  EXPECT_EQ(compare_runs(reference, result.module, {at::randn({2, 3, 4, 4})}, 0.03).differing, 0);
  EXPECT_EQ(print_graph(result.module->graph()), R"(graph(%x: user "x" f32[2, 3, 4, 4]) {
  %q: u8[2, 3, 4, 4] = halftone::quantize_per_tensor(%x, 0.03, 90, 0, 255, dtype:u8)
  %m_q: u8[2, 3, 2, 2; 12, 1, 6, 3] = halftone::int8_max_pool(%q, kernel=[2, 2], stride=[2, 2], padding=[0, 0], dilation=[1, 1], ceil_mode=false)
  %p_q: u8[2, 3, 4, 4; ?] = aten::constant_pad_nd(%m_q, [1, 1, 1, 1], 90)
  %parts_q: list = aten::split.Tensor(%p_q, 2, 2)
  %a_q: u8[2, 3, 2, 4; ?], %b_q: u8[2, 3, 2, 4; ?] = builtin::unpack(%parts_q)
  %c_q: u8[2, 3, 4, 4; 48, 1, 12, 3] = halftone::int8_cat([%b_q, %a_q], 2, scales=[0.029999999329447746, 0.029999999329447746], zero_points=[90, 90], out_scale=0.029999999329447746, out_zero_point=90, out_min=0, out_max=255)
  %v_q: u8[2, 48; ?] = aten::reshape(%c_q, [2, 48])
  %out: f32[2, 48; ?] = halftone::dequantize_per_tensor(%v_q, 0.03, 90)
  %out_contiguous: f32[2, 48] = aten::contiguous(%out)
  return %out_contiguous
}
)");
}

TEST(Lower, RowsAreJoinedAsTheyLie) {
  expect_one("halftone::int8_cat", "[2, 4, 6]", "  %y: f32[2, 4, 12] = aten::cat([%d, %d2], -1)",
             "[2, 4, 12]", {2, 4, 6}, 0);
  expect_one("aten::cat", "[2, 4, 6]", "  %y: f32[2, 8, 6] = aten::cat([%d, %d], 1)", "[2, 8, 6]", {2, 4, 6},
             0);
}

TEST(Lower, DropoutInInferenceIsNothing) {
  const LowerResult result =
      expect_one("halftone::int8_lookup", "[4, 6]", "  %y: f32[4, 6] = aten::dropout(%d, 0.5, false)",
                 "[4, 6]", {4, 6}, 0);
  EXPECT_EQ(count_nodes(result.module->graph(), "aten::dropout"), 0U);
}

TEST(Lower, BatchNormThatNothingTookIsOneWeightForEachChannel) {
  at::manual_seed(16);
  const char* text = R"(
graph(%g: parameter "bn.weight" f32[5], %b: parameter "bn.bias" f32[5], %m: buffer "bn.mean" f32[5],
      %v: buffer "bn.var" f32[5], %x: user "x" f32[2, 5, 6, 4]) {
  %q: u8[2, 5, 6, 4] = halftone::quantize_per_tensor(%x, 0.03, 90, 0, 255, dtype:u8)
  %d: f32[2, 5, 6, 4] = halftone::dequantize_per_tensor(%q, 0.03, 90)
  %n: f32[2, 5, 6, 4] = aten::batch_norm(%d, %g, %b, %m, %v, false, 0.1, 1e-05, true)  @ "bn"
  %r: f32[2, 5, 6, 4] = aten::relu(%n)
  %yq: u8[2, 5, 6, 4] = halftone::quantize_per_tensor(%r, 0.02, 5, 0, 255, dtype:u8)
  %out: f32[2, 5, 6, 4] = halftone::dequantize_per_tensor(%yq, 0.02, 5)
  return %out
})";
  const TensorMap tensors = {{"bn.weight", at::randn({5})},
                             {"bn.bias", at::randn({5})},
                             {"bn.mean", at::randn({5})},
                             {"bn.var", at::rand({5}) + 0.1}};
  const LowerResult result = expect_lowered(text, tensors, {at::randn({2, 5, 6, 4})}, 0.02);
  EXPECT_EQ(result.report.operators, (std::map<std::string, size_t>{{"halftone::int8_conv", 1}}));
  EXPECT_FALSE(result.module->tensors()->contains("bn.mean"));
}

TEST(Lower, ActivationsThatNoProductTakesAreListed) {
  const char* text = R"(
graph(%w: parameter "w" i8[6, 6], %x: user "x" f32[2, 6]) {
  %q: u8[2, 6] = halftone::quantize_per_tensor(%x, 0.03, 90, 0, 255, dtype:u8)
  %d: f32[2, 6] = halftone::dequantize_per_tensor(%q, 0.03, 90)
  %dw: f32[6, 6] = halftone::dequantize_per_tensor(%w, 0.01, 0)
  %y: f32[2, 6] = aten::linear(%d, %dw)  @ "fc"
  %a: f32[2, 6] = aten::leaky_relu(%y)  @ "act"
  %yq: u8[2, 6] = halftone::quantize_per_tensor(%a, 0.06, 90, 0, 255, dtype:u8)
  %out: f32[2, 6] = halftone::dequantize_per_tensor(%yq, 0.06, 90)
  return %out
})";
  at::manual_seed(17);
  const auto reference = reference_module(text, {{"w", random_weight({6, 6})}});
  const LowerResult result = lower(*reference);
  ASSERT_EQ(result.report.kept.size(), 1U) << result.report.to_text();
  EXPECT_EQ(result.report.kept[0].layer, "act");
  EXPECT_EQ(result.report.kept[0].reason, "no kernel applies it where a product writes its result");
  EXPECT_LE(compare_runs(reference, result.module, {at::randn({2, 6})}, 0.06).largest, 1.001);
}

TEST(Lower, PairsOfDifferentScalesBecomeOneTable) {
  const char* text = R"(
graph(%x: user "x" f32[7]) {
  %q: i8[7] = halftone::quantize_per_tensor(%x, 0.02, -5, -128, 127, dtype:i8)
  %d: f32[7] = halftone::dequantize_per_tensor(%q, 0.02, -5)
  %q2: u8[7] = halftone::quantize_per_tensor(%d, 0.03, 100, 0, 255, dtype:u8)
  %out: f32[7] = halftone::dequantize_per_tensor(%q2, 0.03, 100)
  return %out
})";
  at::manual_seed(13);
  const auto reference = reference_module(text);
  const LowerResult result = lower(*reference);
  EXPECT_EQ(count_nodes(result.module->graph(), "halftone::int8_lookup"), 1U);
  EXPECT_EQ(compare_runs(reference, result.module, {at::randn({7}) * 3}, 0.03).differing, 0);
}

TEST(Lower, NarrowerRangesAreNoPairs) {
  const char* text = R"(
graph(%x: user "x" f32[300]) {
  %q: u8[300] = halftone::quantize_per_tensor(%x, 0.02, 60, 0, 255, dtype:u8)
  %d: f32[300] = halftone::dequantize_per_tensor(%q, 0.02, 60)
  %q2: u8[300] = halftone::quantize_per_tensor(%d, 0.02, 60, 0, 127, dtype:u8)
  %out: f32[300] = halftone::dequantize_per_tensor(%q2, 0.02, 60)
  return %out
})";
  at::manual_seed(14);
  const auto reference = reference_module(text);
  EXPECT_EQ(compare_runs(reference, lower(*reference).module, {at::randn({300}) * 3}, 0.02).differing, 0);
}

TEST(Lower, ABufferThatIsOnlyWrittenStays) {
  // What reads the buffer is dead and goes with the first rewrite; the mutation output still writes it.
  const char* text = R"(
graph(%last: buffer "last" f32[6], %x: user "x" f32[6]) {
  %dead: f32[6] = aten::neg(%last)
  %q: u8[6] = halftone::quantize_per_tensor(%x, 0.02, 60, 0, 255, dtype:u8)
  %d: f32[6] = halftone::dequantize_per_tensor(%q, 0.02, 60)
  %q2: u8[6] = halftone::quantize_per_tensor(%d, 0.02, 60, 0, 255, dtype:u8)
  %out: f32[6] = halftone::dequantize_per_tensor(%q2, 0.02, 60)
  return %out, buffer_mutation "last" %out
})";
  const LowerResult result = lower(*reference_module(text, {{"last", at::zeros({6})}}));
  EXPECT_EQ(result.module->graph().try_value("dead"), nullptr) << print_graph(result.module->graph());
  Session session(result.module);
  const at::Tensor out = session.run({at::ones({6})}).at(0).toTensor();
  EXPECT_TRUE(at::equal(session.state("last"), out));
  EXPECT_FLOAT_EQ(out[0].item<float>(), 1.0F);
}

TEST(Lower, WhatHasNoKernelStaysAndIsListed) {
  at::manual_seed(15);
  const std::string text =
      between("[2, 6]", "  %y: f32[2, 6] = aten::softmax.int(%d, -1)  @ \"head\" \"Softmax\"", "[2, 6]");
  const auto reference = reference_module(text);
  const LowerResult result = lower(*reference);
  ASSERT_EQ(result.report.kept.size(), 1U) << result.report.to_text();
  EXPECT_EQ(result.report.kept[0].target, "aten::softmax.int");
  EXPECT_EQ(result.report.kept[0].layer, "head");
  EXPECT_EQ(result.report.kept[0].reason, "there is no int8 kernel for aten::softmax.int");
  EXPECT_THAT(result.report.to_text(), testing::HasSubstr("Float between quantize and dequantize: 1 node\n"));
  EXPECT_EQ(compare_runs(reference, result.module, {at::randn({2, 6})}, 0.04).differing, 0);
}

TEST(Lower, FloatReadersOfASumKeepItFloat) {
  const char* text = R"(
graph(%x: user "x" f32[2, 6]) {
  %q: u8[2, 6] = halftone::quantize_per_tensor(%x, 0.03, 90, 0, 255, dtype:u8)
  %d: f32[2, 6] = halftone::dequantize_per_tensor(%q, 0.03, 90)
  %y: f32[2, 6] = aten::add.Tensor(%d, %d)  @ "sum"
  %yq: u8[2, 6] = halftone::quantize_per_tensor(%y, 0.06, 90, 0, 255, dtype:u8)
  %out: f32[2, 6] = halftone::dequantize_per_tensor(%yq, 0.06, 90)
  return %out, %y
})";
  const LowerResult result = lower(*reference_module(text));
  ASSERT_EQ(result.report.kept.size(), 1U) << result.report.to_text();
  EXPECT_EQ(result.report.kept[0].reason, "its result is a result of the model");
}

TEST(Lower, GraphsWithoutQuantizationStayAsTheyAre) {
  const auto module =
      reference_module("graph(%x: user \"x\" f32[2]) { %y: f32[2] = aten::relu(%x) return %y }");
  const LowerResult result = lower(*module);
  EXPECT_EQ(print_graph(result.module->graph()), print_graph(module->graph()));
  EXPECT_TRUE(result.report.kept.empty());
  EXPECT_TRUE(result.report.operators.empty());
}

}  // namespace
}  // namespace halftone
