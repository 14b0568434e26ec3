// Static int8 graphs as plans: native from end to end, the same bytes as the operators give.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/test_support.h"
#include "halftone/compile/compile.h"
#include "halftone/ptq/lower.h"
#include "quant/ptq/quantize_op.h"

namespace halftone {
namespace {

/// A residual block with max pooling in front, a gate over pixels, cat of two scales, mean and a linear.
constexpr const char* kBlock = R"(
graph(%w1: parameter "w1" i8[16, 3, 3, 3], %w2: parameter "w2" i8[16, 16, 1, 1], %w3: parameter "w3" i8[16, 1, 3, 3],
      %fc: parameter "fc" i8[10, 32], %b1: parameter "b1" f32[16], %x: user "x" f32[s0, 3, 20, 18]) {
  %q: u8[s0, 3, 20, 18] = halftone::quantize_per_tensor(%x, 0.03, 60, 0, 127, dtype:u8)
  %d: f32[s0, 3, 20, 18] = halftone::dequantize_per_tensor(%q, 0.03, 60)
  %dw1: f32[16, 3, 3, 3] = halftone::dequantize_per_tensor(%w1, 0.004, 0)
  %c1: f32[s0, 16, 10, 9] = aten::conv2d(%d, %dw1, %b1, [2, 2], [1, 1])  @ "c1"
  %r1: f32[s0, 16, 10, 9] = aten::relu(%c1)
  %q1: u8[s0, 16, 10, 9] = halftone::quantize_per_tensor(%r1, 0.05, 0, 0, 127, dtype:u8)
  %d1: f32[s0, 16, 10, 9] = halftone::dequantize_per_tensor(%q1, 0.05, 0)
  %m: f32[s0, 16, 5, 5] = aten::max_pool2d(%d1, [3, 3], [2, 2], [1, 1])
  %mq: u8[s0, 16, 5, 5] = halftone::quantize_per_tensor(%m, 0.05, 0, 0, 127, dtype:u8)
  %md: f32[s0, 16, 5, 5] = halftone::dequantize_per_tensor(%mq, 0.05, 0)
  %dw2: f32[16, 16, 1, 1] = halftone::dequantize_per_tensor(%w2, 0.003, 0)
  %c2: f32[s0, 16, 5, 5] = aten::conv2d(%md, %dw2)  @ "c2"
  %s2: f32[s0, 16, 5, 5] = aten::add.Tensor(%c2, %md)
  %q2: u8[s0, 16, 5, 5] = halftone::quantize_per_tensor(%s2, 0.04, 50, 0, 127, dtype:u8)
  %d2: f32[s0, 16, 5, 5] = halftone::dequantize_per_tensor(%q2, 0.04, 50)
  %dw3: f32[16, 1, 3, 3] = halftone::dequantize_per_tensor(%w3, 0.005, 0)
  %c3: f32[s0, 16, 5, 5] = aten::conv2d(%d2, %dw3, None, [1, 1], [1, 1], [1, 1], 16)  @ "c3"
  %q3: u8[s0, 16, 5, 5] = halftone::quantize_per_tensor(%c3, 0.06, 64, 0, 127, dtype:u8)
  %d3: f32[s0, 16, 5, 5] = halftone::dequantize_per_tensor(%q3, 0.06, 64)
  %g: f32[s0, 16, 1, 1] = aten::adaptive_avg_pool2d(%d3, [1, 1])
  %gq: u8[s0, 16, 1, 1] = halftone::quantize_per_tensor(%g, 0.05, 64, 0, 127, dtype:u8)
  %gd: f32[s0, 16, 1, 1] = halftone::dequantize_per_tensor(%gq, 0.05, 64)
  %sg: f32[s0, 16, 1, 1] = aten::sigmoid(%gd)
  %sq: u8[s0, 16, 1, 1] = halftone::quantize_per_tensor(%sg, 0.0078125, 0, 0, 127, dtype:u8)
  %sd: f32[s0, 16, 1, 1] = halftone::dequantize_per_tensor(%sq, 0.0078125, 0)
  %p: f32[s0, 16, 5, 5] = aten::mul.Tensor(%d3, %sd)
  %pq: u8[s0, 16, 5, 5] = halftone::quantize_per_tensor(%p, 0.06, 64, 0, 127, dtype:u8)
  %pd: f32[s0, 16, 5, 5] = halftone::dequantize_per_tensor(%pq, 0.06, 64)
  %k: f32[s0, 32, 5, 5] = aten::cat([%pd, %d2], 1)
  %kq: u8[s0, 32, 5, 5] = halftone::quantize_per_tensor(%k, 0.06, 60, 0, 127, dtype:u8)
  %kd: f32[s0, 32, 5, 5] = halftone::dequantize_per_tensor(%kq, 0.06, 60)
  %sum: f32[s0, 32, 5, 5] = aten::add.Tensor(%kd, %kd)
  %sumr: f32[s0, 32, 5, 5] = aten::relu(%sum)
  %uq: u8[s0, 32, 5, 5] = halftone::quantize_per_tensor(%sumr, 0.1, 0, 0, 127, dtype:u8)
  %ud: f32[s0, 32, 5, 5] = halftone::dequantize_per_tensor(%uq, 0.1, 0)
  %up: f32[s0, 32, 10, 10] = aten::upsample_bilinear2d.vec(%ud, None, false, [2.0, 2.0])
  %upq: u8[s0, 32, 10, 10] = halftone::quantize_per_tensor(%up, 0.1, 0, 0, 127, dtype:u8)
  %upd: f32[s0, 32, 10, 10] = halftone::dequantize_per_tensor(%upq, 0.1, 0)
  %v: f32[s0, 32] = aten::mean.dim(%upd, [2, 3])
  %vq: u8[s0, 32] = halftone::quantize_per_tensor(%v, 0.05, 0, 0, 127, dtype:u8)
  %vd: f32[s0, 32] = halftone::dequantize_per_tensor(%vq, 0.05, 0)
  %dfc: f32[10, 32] = halftone::dequantize_per_tensor(%fc, 0.01, 0)
  %y: f32[s0, 10] = aten::linear(%vd, %dfc)  @ "fc"
  return %y, %upd
})";

std::shared_ptr<GraphModule> block_module(int64_t limit) {
  ops::dequantize_per_tensor(at::zeros({1}, at::kByte), 1.0, 0);
  const auto weight = [&](at::IntArrayRef sizes) { return at::randint(-limit, limit + 1, sizes, at::kChar); };
  return module_from_text(kBlock, {{"w1", weight({16, 3, 3, 3})},
                                   {"w2", weight({16, 16, 1, 1})},
                                   {"w3", weight({16, 1, 3, 3})},
                                   {"fc", weight({10, 32})},
                                   {"b1", at::randn({16})}});
}

class Int8Plan : public testing::TestWithParam<int64_t> {};

TEST_P(Int8Plan, IsNativeAndGivesTheBytesOfTheOperators) {
  at::manual_seed(21);
  const auto reference = block_module(GetParam());
  const LowerResult lowered = lower(*reference);
  ASSERT_TRUE(lowered.report.kept.empty()) << lowered.report.to_text();
  const auto compiled = compile(lowered.module);
  for (const int64_t batch : {1, 3}) {
    const at::Tensor x = at::randn({batch, 3, 20, 18});
    const auto expected = Session(lowered.module).run({x});
    const auto actual = compiled->run({x});
    const PlanReport report = compiled->report({x});
    EXPECT_THAT(report.left_to_aten, testing::IsEmpty());
    EXPECT_EQ(report.interpreted, "");
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(actual[i].toTensor().equal(expected[i].toTensor())) << "result " << i;
      EXPECT_EQ(actual[i].toTensor().strides(), expected[i].toTensor().strides()) << "result " << i;
    }
    // The reference graph, compiled, is the same up to the rounding of sums.
    const at::Tensor floats = Session(reference).run({x})[0].toTensor();
    EXPECT_LT((actual[0].toTensor() - floats).abs().max().item<double>(), 0.3) << "of " << floats;
  }
}

INSTANTIATE_TEST_SUITE_P(WeightLimits, Int8Plan, testing::Values(64, 127));

TEST(Int8Plan, CountsOperationsOfProducts) {
  at::manual_seed(22);
  const auto compiled = compile(lower(*block_module(64)).module);
  const PlanReport report = compiled->report({at::randn({2, 3, 20, 18})});
  const auto conv = std::find_if(report.steps.begin(), report.steps.end(),
                                 [](const StepReport& step) { return step.layer == "c1"; });
  ASSERT_NE(conv, report.steps.end());
  EXPECT_EQ(conv->operations, 2 * (2 * 16 * 10 * 9) * 27);
  EXPECT_EQ(conv->arithmetic, Arithmetic::kInt7);
}

TEST(Int8Plan, ResultsHaveTheStridesOfTheGraph) {
  at::manual_seed(24);
  ops::dequantize_per_tensor(at::zeros({1}, at::kByte), 1.0, 0);
  // The integers of the input are turned around for the convolution, and given back to the caller too.
  const auto reference = module_from_text(R"(
graph(%w: parameter "w" i8[8, 3, 1, 1], %x: user "x" f32[2, 3, 4, 5]) {
  %q: u8[2, 3, 4, 5] = halftone::quantize_per_tensor(%x, 0.03, 128, 0, 255, dtype:u8)
  %d: f32[2, 3, 4, 5] = halftone::dequantize_per_tensor(%q, 0.03, 128)
  %dw: f32[8, 3, 1, 1] = halftone::dequantize_per_tensor(%w, 0.01, 0)
  %y: f32[2, 8, 4, 5] = aten::conv2d(%d, %dw)
  %yq: u8[2, 8, 4, 5] = halftone::quantize_per_tensor(%y, 0.08, 120, 0, 255, dtype:u8)
  %yd: f32[2, 8, 4, 5] = halftone::dequantize_per_tensor(%yq, 0.08, 120)
  return %d, %yd
})",
                                          {{"w", at::randint(-127, 128, {8, 3, 1, 1}, at::kChar)}});
  const LowerResult lowered = lower(*reference);
  const at::Tensor x = at::randn({2, 3, 4, 5});
  const auto expected = Session(reference).run({x}), actual = compile(lowered.module)->run({x});
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(actual[i].toTensor().strides(), expected[i].toTensor().strides()) << "result " << i;
    EXPECT_LE((actual[i].toTensor() - expected[i].toTensor()).abs().max().item<double>(), 0.081);
  }
}

TEST(Int8Plan, RowsOfTransformersStayInOrder) {
  at::manual_seed(23);
  ops::dequantize_per_tensor(at::zeros({1}, at::kByte), 1.0, 0);
  const auto reference = module_from_text(R"(
graph(%w: parameter "w" i8[8, 8], %x: user "x" f32[2, 5, 8]) {
  %q: u8[2, 5, 8] = halftone::quantize_per_tensor(%x, 0.03, 128, 0, 255, dtype:u8)
  %d: f32[2, 5, 8] = halftone::dequantize_per_tensor(%q, 0.03, 128)
  %dw: f32[8, 8] = halftone::dequantize_per_tensor(%w, 0.01, 0)
  %y: f32[2, 5, 8] = aten::linear(%d, %dw)
  %s: f32[2, 5, 8] = aten::add.Tensor(%y, %d)
  %sq: u8[2, 5, 8] = halftone::quantize_per_tensor(%s, 0.08, 120, 0, 255, dtype:u8)
  %sd: f32[2, 5, 8] = halftone::dequantize_per_tensor(%sq, 0.08, 120)
  %t: f32[2, 8, 5; 40, 1, 8] = aten::transpose.int(%sd, 1, 2)
  %g: f32[2, 8, 5; ?] = aten::gelu(%t)
  %gq: u8[2, 8, 5; ?] = halftone::quantize_per_tensor(%g, 0.05, 10, 0, 255, dtype:u8)
  %gd: f32[2, 8, 5; ?] = halftone::dequantize_per_tensor(%gq, 0.05, 10)
  %m: f32[2, 8, 5; ?] = aten::mul.Tensor(%gd, %t)
  %mq: u8[2, 8, 5; ?] = halftone::quantize_per_tensor(%m, 0.05, 10, 0, 255, dtype:u8)
  %md: f32[2, 8, 5; ?] = halftone::dequantize_per_tensor(%mq, 0.05, 10)
  return %md
})",
                                          {{"w", at::randint(-127, 128, {8, 8}, at::kChar)}});
  const LowerResult lowered = lower(*reference);
  EXPECT_TRUE(lowered.report.kept.empty()) << lowered.report.to_text();
  const at::Tensor x = at::randn({2, 5, 8});
  const auto compiled = compile(lowered.module);
  EXPECT_THAT(compiled->report({x}).left_to_aten, testing::IsEmpty());
  const at::Tensor expected = Session(lowered.module).run({x})[0].toTensor();
  EXPECT_TRUE(compiled->run({x})[0].toTensor().equal(expected));
}

}  // namespace
}  // namespace halftone
