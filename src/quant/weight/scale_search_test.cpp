// Int4Rounding::kSearch: scales with the least squared error.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "quant/weight/test_support.h"

namespace halftone {
namespace {

Int4WeightOnlyConfig config_of(bool symmetric, Int4Rounding rounding, int group_size = 32) {
  return {.group_size = group_size, .symmetric = symmetric, .rounding = rounding};
}

/// The sum of squared errors of each group: [n, groups], in double.
at::Tensor group_errors(const at::Tensor& weight, const Int4WeightOnlyConfig& config) {
  const QuantizedWeight w = quantize_weight(weight, config, "layer");
  const at::Tensor error = w.format->dequantize(w).to(at::kDouble) - weight.to(at::kDouble);
  return error.reshape({weight.size(0), -1, config.group_size}).square().sum(2);
}

/// What is left of the squared error of rounding to nearest.
double share_left(const at::Tensor& weight, bool symmetric, int group_size = 32) {
  const at::Tensor nearest = group_errors(weight, config_of(symmetric, Int4Rounding::kNearest, group_size));
  const at::Tensor search = group_errors(weight, config_of(symmetric, Int4Rounding::kSearch, group_size));
  // The search adds up exact products, dequantize() rounds each to float32: a unit in the last place of the
  // weights.
  const double slack = std::pow(weight.abs().max().item<double>() * 0x1p-22, 2) * group_size;
  EXPECT_LE((search - nearest * (1 + 1e-6)).max().item<double>(), slack);
  return search.sum().item<double>() / nearest.sum().item<double>();
}

TEST(ScaleSearch, NoGroupGetsWorseAndTheSumGetsBetter) {
  for (const auto dtype : {at::kFloat, at::kBFloat16, at::kHalf}) {
    const at::Tensor weight = randn({64, 256}, 1).to(dtype);
    EXPECT_LT(share_left(weight, true), 0.87);
    EXPECT_LT(share_left(weight, false), 0.93);
    EXPECT_LT(share_left(weight, true, 128), 0.87);
  }
}

TEST(ScaleSearch, ClipsALoneLargeWeightOnlyWhereThatPays) {
  // One weight of 1.15 among many of exactly k/7: the steps of the many fit without it.
  at::Tensor weight = at::arange(-16, 16, at::kFloat).remainder(15).sub(7).div(7).reshape({1, 32});
  weight[0][5] = 1.15f;
  EXPECT_LT(share_left(weight, true), 0.5);
  // Far out, clipping would cost more than coarse steps do.
  weight[0][5] = 50.0f;
  const QuantizedWeight w = quantize_weight(weight, config_of(true, Int4Rounding::kSearch), "layer");
  EXPECT_NEAR(w.format->dequantize(w)[0][5].item<float>(), 50.0f, 0.5f);
}

TEST(ScaleSearch, FindsTheExactGridAgain) {
  // All sixteen integers times a step: rounding to nearest takes max / 7.5, which is another grid.
  const at::Tensor integers = at::arange(32, at::kFloat).remainder(16).sub(8);
  const at::Tensor weight = integers.mul(0.37f).reshape({1, 32});
  EXPECT_GT(group_errors(weight, config_of(true, Int4Rounding::kNearest)).item<double>(), 0.01);
  const QuantizedWeight w = quantize_weight(weight, config_of(true, Int4Rounding::kSearch), "layer");
  EXPECT_NEAR(w.part("scale").item<float>(), 0.37f, 1e-6f);
  EXPECT_TRUE(at::allclose(w.format->dequantize(w), weight, 0, 1e-5));
}

TEST(ScaleSearch, ZerosAndExtremeWeightsKeepFiniteScales) {
  const float largest = std::numeric_limits<float>::max(), least = std::numeric_limits<float>::denorm_min();
  at::Tensor weight = at::zeros({5, 32});
  weight[1] = randn({32}, 1).clamp(-1, 1) * largest;
  weight[2] = randn({32}, 2).sign() * largest;
  weight[3] = randn({32}, 3) * least * 4;
  weight[4][7] = -largest;
  for (const bool symmetric : {true, false}) {
    share_left(weight[1].reshape({1, 32}), symmetric);
    const QuantizedWeight w = quantize_weight(weight, config_of(symmetric, Int4Rounding::kSearch), "layer");
    EXPECT_TRUE(w.part("scale").isfinite().all().item<bool>());
    EXPECT_GT(w.part("scale").min().item<float>(), 0);
    EXPECT_TRUE(w.format->dequantize(w)[0].eq(0).all().item<bool>());
    EXPECT_TRUE(w.format->linear(at::zeros({1, 32}), w, {}).eq(0).all().item<bool>());
  }
}

TEST(ScaleSearch, TheSameBytesWithAnyNumberOfThreads) {
  const at::Tensor weight = randn({70, 64}, 4);
  for (const bool symmetric : {true, false}) {
    const auto quantize = [&](int threads) {
      const ThreadCount count(threads);
      return quantize_weight(weight, config_of(symmetric, Int4Rounding::kSearch), "layer");
    };
    const QuantizedWeight one = quantize(1), two = quantize(2);
    for (const auto& [name, tensor] : one.parts) EXPECT_TRUE(tensor.equal(two.part(name))) << name;
  }
}

}  // namespace
}  // namespace halftone
