#include "quant/weight/arithmetic/levels.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "kernels/common/int4_weights.h"
#include "quant/weight/arithmetic/bits.h"
#include "quant/weight/ops.h"

namespace halftone {
namespace {

constexpr int64_t kGroup = 32;

at::Tensor half_rounded(const at::Tensor& x) {
  return x.to(at::kHalf).to(at::kFloat);
}

struct Blocks {
  at::Tensor integers, scale, minimum;  // [n, groups, 32] and [n, groups, 1]

  Blocks(int64_t n, int64_t groups, int levels = 16) {
    at::manual_seed(7);
    integers = at::randint(levels, {n, groups, kGroup}).to(at::kFloat);
    scale = half_rounded(at::rand({n, groups, 1}) * 0.02 + 0.001);
    minimum = half_rounded(at::randn({n, groups, 1}) * 0.2);
  }
  /// As ggml computes them: a product and a sum, both rounded.
  at::Tensor weight() const { return (integers * scale + minimum).reshape({integers.size(0), -1}); }
};

void expect_kept(const at::Tensor& weight) {
  const auto parts = try_levels(weight, kGroup);
  ASSERT_TRUE(parts.has_value());
  EXPECT_EQ(parts->zero_point.scalar_type(), at::kFloat);
  const at::Tensor restored = dequantize_affine(parts->q, parts->scale, parts->zero_point, kGroup);
  const at::Tensor largest = weight.abs().reshape({weight.size(0), -1, kGroup}).amax(2, true);
  const at::Tensor error =
      (restored - weight).abs().reshape({weight.size(0), -1, kGroup}) / largest.clamp_min(1e-30);
  EXPECT_LE(error.max().item<double>(), 0x1p-18);
}

TEST(Levels, FindsMinimumAndScaleAgain) {
  expect_kept(Blocks(40, 5).weight());
}

TEST(Levels, FindsNegativeScales) {
  Blocks blocks(20, 3);
  blocks.scale.neg_();
  blocks.minimum = blocks.scale * -8;  // Q4_0: counted from -8, the scale has the sign of the largest weight
  expect_kept(blocks.weight());
}

TEST(Levels, TakesGroupsInWhichLevelsAreMissing) {
  // Distances of 2, 3 and 7 levels: the smallest one is not a level.
  at::Tensor integers = at::zeros({1, 4, kGroup});
  const std::array<std::array<float, 3>, 4> used = {{{0, 2, 5}, {0, 7, 15}, {3, 3, 3}, {0, 15, 15}}};
  for (int64_t g = 0; g < 4; ++g)
    for (int64_t i = 0; i < kGroup; ++i)
      integers[0][g][i] = used[static_cast<size_t>(g)][static_cast<size_t>(i % 3)];
  expect_kept((integers * 0.013 - 0.1).reshape({1, 4 * kGroup}));
}

TEST(Levels, TakesConstantGroupsAndZeros) {
  expect_kept(at::full({3, kGroup}, 0.25f));
  expect_kept(at::zeros({2, 2 * kGroup}));
}

TEST(Levels, RefusesOtherWeights) {
  at::manual_seed(1);
  EXPECT_FALSE(try_levels(at::randn({4, 64}), kGroup).has_value());
  EXPECT_FALSE(try_levels(Blocks(4, 2, 17).weight(), kGroup).has_value());
  at::Tensor one_off = Blocks(4, 2).weight();
  one_off[3][63] += 1e-3;
  EXPECT_FALSE(try_levels(one_off, kGroup).has_value());
  EXPECT_FALSE(try_levels(Blocks(4, 2).weight().narrow(1, 0, 40).contiguous(), kGroup).has_value());
  // Rounding to half has moved the levels: they are not evenly spaced any more.
  EXPECT_FALSE(try_levels(half_rounded(Blocks(40, 5).weight()), kGroup).has_value());
}

TEST(Levels, TheOperatorComputesWithThem) {
  const at::Tensor weight = Blocks(50, 4).weight();
  const auto parts = try_levels(weight, kGroup);
  ASSERT_TRUE(parts.has_value());
  for (const int64_t rows : {1, 5, 40}) {
    const at::Tensor x = at::randn({rows, 4 * kGroup});
    const at::Tensor expected = at::linear(x.to(at::kDouble), weight.to(at::kDouble));
    for (const bool quantized : {false, true}) {
      const at::Tensor y = ops::int4_linear(x, pack_bits(parts->q, 4), parts->scale, parts->zero_point,
                                            std::nullopt, kGroup, quantized, 0);
      const double error =
          (y.to(at::kDouble) - expected).norm().item<double>() / expected.norm().item<double>();
      EXPECT_LE(error, quantized ? 1e-2 : 1e-5) << rows;
      EXPECT_EQ(quantized, error > 1e-4) << rows;  // eight bits of the activations are seen
    }
  }
}

}  // namespace
}  // namespace halftone
