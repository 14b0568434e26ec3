// Groups that do not divide the number of inputs: the last one is shorter. The oracle restores the weights
// from their parts, number by number, and multiplies in double.
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <gmock/gmock.h>

#include "halftone/quant/weight_format.h"
#include "quant/weight/test_support.h"

namespace halftone {
namespace {

/// float64 [n, k] of what the parts say, by the formula of docs/format.md.
at::Tensor restored(const QuantizedWeight& weight, int bits, int64_t group) {
  const int64_t n = weight.sizes[0], k = weight.sizes[1], groups = (k + group - 1) / group;
  const at::Tensor bytes = weight.part("weight"), scale = weight.part("scale");
  EXPECT_EQ(bytes.sizes(), (std::vector<int64_t>{n, (k * bits + 7) / 8}));
  EXPECT_EQ(scale.sizes(), (std::vector<int64_t>{n, groups}));
  at::Tensor result = at::empty({n, k}, at::kDouble);
  for (int64_t row = 0; row < n; ++row) {
    const uint8_t* packed = bytes.const_data_ptr<uint8_t>() + row * bytes.size(1);
    for (int64_t i = 0; i < k; ++i) {
      int q = 0;
      for (int b = 0; b < bits; ++b) q |= (packed[(i * bits + b) / 8] >> ((i * bits + b) % 8) & 1) << b;
      if (q >= 1 << (bits - 1)) q -= 1 << bits;
      const int64_t entry = row * groups + i / group;
      const int zero =
          weight.has_part("zero_point") ? weight.part("zero_point").const_data_ptr<int8_t>()[entry] : 0;
      result.mutable_data_ptr<double>()[row * k + i] =
          (q - zero) * double{scale.const_data_ptr<float>()[entry]};
    }
  }
  return result;
}

struct ShortGroupCase {
  QuantConfig config;
  int bits;
  int64_t group;
  bool quantizes_x = false;
};

std::vector<ShortGroupCase> short_group_cases() {
  std::vector<ShortGroupCase> all;
  for (const int group : {32, 128}) {
    for (const bool symmetric : {true, false}) {
      all.push_back({Int4WeightOnlyConfig{group, symmetric}, 4, group});
      all.push_back({Int4WeightOnlyConfig{group, symmetric, Int4Activations::kInt8}, 4, group, true});
      for (const int bits : {3, 5, 8})
        all.push_back({IntxWeightOnlyConfig{bits, group, symmetric}, bits, group});
    }
  }
  Int4WeightOnlyConfig search;
  search.rounding = Int4Rounding::kSearch;
  all.push_back({search, 4, 32});
  return all;
}

TEST(ShortGroups, AgreeWithTheRestoredWeights) {
  for (const ShortGroupCase& one : short_group_cases()) {
    for (const int64_t k : {100, 33, 31, 1}) {
      const at::Tensor original = randn({37, k}, 1);
      const QuantizedWeight weight = quantize_weight(original, one.config, "layer");
      const at::Tensor exact = restored(weight, one.bits, one.group);
      EXPECT_TRUE(at::equal(weight.format->dequantize(weight), exact.to(at::kFloat)))
          << one.config.describe();
      // A step of the coarsest scale is what rounding may cost.
      EXPECT_LE((exact - original).abs().max().item<double>(),
                1.01 * weight.part("scale").max().item<double>());
      for (const int64_t m : {1, 3, 40}) {
        const at::Tensor x = randn({m, k}, 2), bias = randn({37}, 3);
        const at::Tensor y = weight.format->linear(x, weight, bias);
        const at::Tensor want = at::matmul(x.to(at::kDouble), exact.t()) + bias;
        // Activations of 8 bits: half a step of max|x| / 127 for each of k products.
        const double bound = one.quantizes_x ? 0.51 * 5 / 127 * exact.abs().sum(1).max().item<double>()
                                             : 1e-5 * (1 + want.abs().max().item<double>());
        EXPECT_LE((y - want).abs().max().item<double>(), bound)
            << one.config.describe() << " k " << k << " m " << m;
      }
    }
  }
}

TEST(ShortGroups, EmbeddingsAreTheRestoredRows) {
  for (const int group : {32, 128}) {
    for (const bool symmetric : {true, false}) {
      for (const int64_t k : {100, 33, 31, 1}) {
        const QuantizedWeight weight =
            quantize_weight(randn({9, k}, 1), Int4WeightOnlyConfig{group, symmetric}, "t");
        const at::Tensor indices = at::arange(9).flip(0);
        const at::Tensor want = restored(weight, 4, group).to(at::kFloat).index_select(0, indices);
        EXPECT_TRUE(at::equal(weight.format->embedding(indices, weight), want)) << group << " " << k;
      }
    }
  }
}

TEST(ShortGroups, GradientsReachTheInput) {
  const QuantizedWeight weight = quantize_weight(randn({7, 33}, 1), Int4WeightOnlyConfig{}, "layer");
  at::Tensor x = randn({5, 33}, 2).requires_grad_(true);
  weight.format->linear(x, weight, std::nullopt).sum().backward();
  const at::Tensor want = restored(weight, 4, 32).sum(0).to(at::kFloat).expand({5, 33});
  EXPECT_TRUE(at::allclose(x.grad(), want, 1e-5, 1e-5));
}

TEST(ShortGroups, WholeGroupsAreAsBefore) {
  const at::Tensor original = randn({5, 96}, 1);
  const QuantizedWeight all = quantize_weight(original, Int4WeightOnlyConfig{}, "layer");
  const QuantizedWeight some =
      quantize_weight(original.narrow(1, 0, 70).contiguous(), Int4WeightOnlyConfig{}, "layer");
  EXPECT_TRUE(at::equal(some.part("scale").narrow(1, 0, 2), all.part("scale").narrow(1, 0, 2)));
  EXPECT_TRUE(at::equal(some.part("weight").narrow(1, 0, 32), all.part("weight").narrow(1, 0, 32)));
}

}  // namespace
}  // namespace halftone
