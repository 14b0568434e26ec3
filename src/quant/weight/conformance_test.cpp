// The contract of every built-in linear format, whatever its integers are.
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>
#include <torch/csrc/autograd/autograd.h>

#include <thread>

#include "graph/operators/operators.h"
#include "quant/weight/packing_cache.h"
#include "quant/weight/test_support.h"

namespace halftone {
namespace {

struct Case {
  QuantConfig config;
  /// Of one activation, in steps of its row's scale: 0 if activations stay as they are.
  double activation_error = 0;
  /// Of the weights that the format takes.
  int64_t k = 64;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.config.describe();
}

class LinearFormat : public testing::TestWithParam<Case> {
 protected:
  QuantizedWeight weight(int64_t n, uint64_t seed = 1) const {
    return quantize_weight(randn({n, k()}, seed), GetParam().config, "layer");
  }
  int64_t k() const { return GetParam().k; }

  static at::Tensor linear(const at::Tensor& x, const QuantizedWeight& w,
                           const std::optional<at::Tensor>& bias = {}) {
    return w.format->linear(x, w, bias);
  }

  /// Root of the mean square.
  static double error_of(const QuantizedWeight& w, const at::Tensor& plain) {
    return (w.format->dequantize(w) - plain).to(at::kDouble).square().mean().sqrt().item<double>();
  }

  void expect_right(const at::Tensor& x, const QuantizedWeight& w,
                    const std::optional<at::Tensor>& bias) const {
    const at::Tensor y = linear(x, w, bias);
    EXPECT_EQ(y.scalar_type(), x.scalar_type());
    EXPECT_TRUE(y.is_contiguous());
    at::Tensor scale = x.to(at::kDouble).abs();
    // u8: a step is at most (max - min) / 255; s8: max / 127; float8: 1/16 of the number itself at most.
    const at::Tensor largest = scale.numel() == 0 ? scale : scale.amax(-1, true).expand_as(scale) / 127.0;
    const at::Tensor quantization =
        at::matmul(largest, w.format->dequantize(w).to(at::kDouble).abs().t()) * GetParam().activation_error;
    expect_close(y, exact_linear(x, w, bias), magnitude(x, w) + quantization * 0x1p24 / (double(k()) + 64),
                 double(k()) + 64);
  }
};

TEST_P(LinearFormat, IsRightForAllLeadingDimensionsAndTypes) {
  const QuantizedWeight w = weight(37);
  const at::Tensor bias = randn({37}, 5);
  for (const c10::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble}) {
    SCOPED_TRACE(c10::toString(type));
    for (const std::vector<int64_t>& leading :
         {std::vector<int64_t>{}, {1}, {3}, {0}, {2, 0}, {2, 5}, {1, 2, 3}, {40}}) {
      std::vector<int64_t> sizes = leading;
      sizes.push_back(k());
      const at::Tensor x = randn(sizes, 3).to(type);
      expect_right(x, w, {});
      expect_right(x, w, bias);
      expect_right(x, w, bias.to(type));
    }
  }
}

TEST_P(LinearFormat, TakesAllStrides) {
  const QuantizedWeight w = weight(20);
  expect_right(randn({k(), 6}, 1).t(), w, {});                          // columns are rows
  expect_right(randn({6, k() * 2 + 3}, 2).narrow(1, 3, k()), w, {});    // row stride
  expect_right(randn({6, k() * 2}, 3).slice(1, 0, k() * 2, 2), w, {});  // every second
  expect_right(randn({1, k()}, 4).expand({5, k()}), w, {});             // stride 0
  expect_right(randn({2, k(), 3}, 5).transpose(1, 2), w, {});
  expect_right(randn({3, k()}, 6), w, randn({40}, 7).slice(0, 0, 40, 2));
}

TEST_P(LinearFormat, IsTheSameForEveryNumberOfThreads) {
  const QuantizedWeight w = weight(300);
  const at::Tensor x = randn({50, k()}, 3);
  at::Tensor one, two;
  {
    const ThreadCount threads(1);
    one = linear(x, w);
  }
  {
    const ThreadCount threads(2);
    two = linear(x, w);
  }
  EXPECT_TRUE(one.equal(two));
}

TEST_P(LinearFormat, QuantizesDeterministically) {
  const QuantizedWeight a = weight(33), b = weight(33);
  for (const auto& [name, part] : a.parts)
    EXPECT_TRUE(part.view(at::kByte).equal(b.part(name).view(at::kByte))) << name;
  EXPECT_EQ(a.bytes(), b.bytes());
  if (k() >= 32) {
    EXPECT_LT(a.bytes(), 33 * k() * 4);
  }
}

TEST_P(LinearFormat, TakesWeightsOfAllTypesAndStrides) {
  const at::Tensor plain = randn({33, k()}, 1);
  const QuantizedWeight a = quantize_weight(plain, GetParam().config, "layer");
  const QuantizedWeight b = quantize_weight(plain.t().contiguous().t(), GetParam().config, "layer");
  for (const auto& [name, part] : a.parts)
    EXPECT_TRUE(part.view(at::kByte).equal(b.part(name).view(at::kByte))) << name;
  for (const c10::ScalarType type : {at::kBFloat16, at::kHalf, at::kDouble}) {
    const QuantizedWeight c = quantize_weight(plain.to(type), GetParam().config, "layer");
    EXPECT_EQ(c.dtype, type);
    EXPECT_LT(error_of(c, plain), 1.1 * error_of(a, plain) + 0.005);
    expect_right(randn({4, k()}, 2).to(type), c, {});
  }
}

TEST_P(LinearFormat, ZeroRowsStayZero) {
  at::Tensor plain = randn({5, k()}, 1);
  plain[2].zero_();
  const QuantizedWeight w = quantize_weight(plain, GetParam().config, "layer");
  EXPECT_EQ(w.format->dequantize(w)[2].abs().max().item<float>(), 0);
  EXPECT_EQ(linear(randn({3, k()}, 2), w).select(1, 2).abs().max().item<float>(), 0);
  const QuantizedWeight all = quantize_weight(at::zeros({4, k()}), GetParam().config, "layer");
  EXPECT_EQ(linear(randn({3, k()}, 2), all).abs().max().item<float>(), 0);
}

TEST_P(LinearFormat, NoOutputsGiveNothing) {
  const QuantizedWeight w = quantize_weight(at::empty({0, k()}), GetParam().config, "layer");
  EXPECT_EQ(linear(randn({3, k()}, 2), w).sizes(), (at::IntArrayRef{3, 0}));
  EXPECT_EQ(w.format->dequantize(w).sizes(), (at::IntArrayRef{0, k()}));
}

TEST_P(LinearFormat, RowsAreAWeightOfTheirOwn) {
  const QuantizedWeight w = weight(30);
  const QuantizedWeight middle = w.format->rows(w, 7, 20);
  EXPECT_EQ(middle.sizes, (std::vector<int64_t>{13, k()}));
  const at::Tensor x = randn({4, k()}, 2);
  EXPECT_TRUE(linear(x, middle).equal(linear(x, w).narrow(1, 7, 13)));
  EXPECT_TRUE(middle.format->dequantize(middle).equal(w.format->dequantize(w).narrow(0, 7, 13)));
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { w.format->rows(w, 7, 31); }),
              testing::HasSubstr("rows [7, 31)"));
}

TEST_P(LinearFormat, GradientsAreThoseOfTheDequantizedWeight) {
  const QuantizedWeight w = weight(12);
  const at::Tensor plain = w.format->dequantize(w);
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{k()}, {5, k()}, {2, 3, k()}, {0, k()}}) {
    for (const c10::ScalarType type : {at::kFloat, at::kBFloat16, at::kDouble}) {
      at::Tensor x = randn(sizes, 3).to(type).requires_grad_();
      at::Tensor bias = randn({12}, 4).to(type).requires_grad_();
      const at::Tensor y = linear(x, w, bias);
      ASSERT_TRUE(y.requires_grad());
      const at::Tensor dy = randn(y.sizes(), 6).to(type);
      const auto gradients = torch::autograd::grad({y}, {x, bias}, {dy});
      const at::Tensor dx = at::matmul(dy.to(at::kDouble), plain.to(at::kDouble));
      const at::Tensor dbias = dy.to(at::kDouble).reshape({-1, 12}).sum(0);
      const double tolerance = type == at::kBFloat16 ? 0.01 : 1e-5;
      EXPECT_TRUE(at::allclose(gradients[0].to(at::kDouble), dx, tolerance, tolerance * 4));
      EXPECT_TRUE(at::allclose(gradients[1].to(at::kDouble), dbias, tolerance, tolerance * 4));
      EXPECT_EQ(gradients[0].scalar_type(), type);
    }
  }
}

TEST_P(LinearFormat, GradientsReachOneOfTheTwoAlone) {
  const QuantizedWeight w = weight(12);
  at::Tensor x = randn({3, k()}, 3).requires_grad_();
  linear(x, w).sum().backward();
  EXPECT_TRUE(at::allclose(x.grad()[1], w.format->dequantize(w).sum(0), 1e-4, 1e-4));
  at::Tensor bias = randn({12}, 4).requires_grad_();
  linear(x.detach(), w, bias).sum().backward();
  EXPECT_TRUE(bias.grad().equal(at::full({12}, 3.0f)));
}

TEST_P(LinearFormat, SecondDerivativesAreThoseOfALinearFunction) {
  const QuantizedWeight w = weight(6);
  at::Tensor x = randn({3, k()}, 3).requires_grad_();
  at::Tensor dy = randn({3, 6}, 4).requires_grad_();
  const at::Tensor dx = torch::autograd::grad({linear(x, w)}, {x}, {dy}, true, true)[0];
  const at::Tensor v = randn(dx.sizes(), 5);
  const at::Tensor second = torch::autograd::grad({dx}, {dy}, {v})[0];
  EXPECT_TRUE(at::allclose(second, at::matmul(v, w.format->dequantize(w).t()), 1e-4, 1e-4));
}

TEST_P(LinearFormat, AllModesGiveTheSame) {
  const QuantizedWeight w = weight(12);
  at::Tensor x = randn({3, k()}, 3);
  const at::Tensor plain = linear(x, w);
  {
    const at::NoGradGuard no_grad;
    at::Tensor leaf = x.clone().requires_grad_();
    const at::Tensor y = linear(leaf, w);
    EXPECT_TRUE(y.equal(plain));
    EXPECT_FALSE(y.requires_grad());
  }
  {
    const c10::InferenceMode inference;
    EXPECT_TRUE(linear(x, w).equal(plain));
    EXPECT_TRUE(linear(x.clone(), w).equal(plain));
    const QuantizedWeight inside = weight(12);
    EXPECT_TRUE(linear(x, inside).equal(plain));
  }
}

TEST_P(LinearFormat, PartsHaveNoGradientAndSayIt) {
  const QuantizedWeight w = weight(12);
  QuantizedWeight asking = w;
  for (auto& [name, part] : asking.parts) {
    if (name == "scale" || w.parts.size() == 1) part = part.clone().requires_grad_();
  }
  const at::Tensor x = randn({3, k()}, 3);
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { linear(x, asking); }),
              testing::HasSubstr("a part of the quantized weight requires a gradient"));
  const at::NoGradGuard no_grad;
  EXPECT_TRUE(linear(x, asking).equal(linear(x, w)));
}

TEST_P(LinearFormat, MetaShapesAreTheRealOnes) {
  QuantizedWeight w = weight(12);
  QuantizedWeight meta = w;
  for (auto& [name, part] : meta.parts) part = part.to(at::kMeta);
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{k()}, {5, k()}, {2, 0, k()}}) {
    const at::Tensor x = randn(sizes, 3).to(at::kBFloat16);
    const at::Tensor real = linear(x, w), shape = linear(x.to(at::kMeta), meta);
    EXPECT_TRUE(shape.is_meta());
    EXPECT_EQ(shape.sizes(), real.sizes());
    EXPECT_EQ(shape.strides(), real.strides());
    EXPECT_EQ(shape.scalar_type(), real.scalar_type());
  }
  EXPECT_ANY_THROW(linear(at::empty({3, k() + 1}, at::kMeta), meta));
  EXPECT_ANY_THROW(linear(at::empty({3, k()}, at::kMeta), meta, at::empty({5}, at::kMeta)));
  at::Tensor x = at::empty({3, k()}, at::TensorOptions(at::kMeta).dtype(at::kFloat)).requires_grad_();
  EXPECT_EQ(torch::autograd::grad({linear(x, meta)}, {x}, {at::empty({3, 12}, at::kMeta)})[0].sizes(),
            x.sizes());
}

TEST_P(LinearFormat, ItsOperatorExistsWithItsPartsAndConstants) {
  const QuantizedWeight w = weight(12);
  const FormatOp op = w.format->linear_op(w);
  const c10::OperatorHandle* handle = try_operator(op.target);
  ASSERT_NE(handle, nullptr) << op.target;
  const auto has = [&](const std::string& name) {
    return handle->schema().argumentIndexWithName(name).has_value();
  };
  for (const auto& [name, part] : w.parts) EXPECT_TRUE(has(name)) << name;
  for (const NamedArgument& constant : op.constants) EXPECT_TRUE(has(constant.name)) << constant.name;
}

TEST_P(LinearFormat, RefusesWhatDoesNotFit) {
  const QuantizedWeight w = weight(12);
  const auto refusal = [&](const at::Tensor& x, const std::optional<at::Tensor>& bias) {
    return message_of(ErrorCode::kInvalidArgument, [&] { linear(x, w, bias); });
  };
  EXPECT_THAT(refusal(randn({3, k() + 1}, 1), {}), testing::HasSubstr("does not fit a weight of"));
  EXPECT_THAT(refusal(at::scalar_tensor(1.0), {}), testing::HasSubstr("does not fit a weight of"));
  EXPECT_THAT(refusal(at::ones({3, k()}, at::kLong), {}),
              testing::HasSubstr("x must be a floating-point tensor"));
  EXPECT_THAT(refusal(randn({3, k()}, 1), randn({11}, 2)),
              testing::HasSubstr("bias must be a floating-point tensor of 12"));
  EXPECT_THAT(refusal(randn({3, k()}, 1), at::ones({12}, at::kLong)), testing::HasSubstr("bias must be"));
}

TEST_P(LinearFormat, RefusesWeightsThatAreNotFinite) {
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    at::Tensor plain = randn({4, k()}, 1);
    plain[2][k() / 2] = bad;
    const std::string message = message_of(
        ErrorCode::kInvalidArgument, [&] { quantize_weight(plain, GetParam().config, "encoder.0.query"); });
    EXPECT_THAT(message, testing::AllOf(testing::HasSubstr("encoder.0.query"),
                                        testing::HasSubstr(fmt::format("weight[2][{}]", k() / 2))));
  }
}

TEST_P(LinearFormat, TakesHugeAndTinyWeights) {
  for (const float size : {2e38f, 1e30f, 1e-30f, 1e-40f}) {
    const at::Tensor plain = at::clamp(randn({4, k()}, 1), -1, 1) * size;
    const QuantizedWeight w = quantize_weight(plain, GetParam().config, "layer");
    EXPECT_TRUE(w.format->dequantize(w).isfinite().all().item<bool>()) << size;
  }
}

TEST_P(LinearFormat, PacksOnceAndFreesWithTheWeight) {
  const PackingCacheStats before = packing_cache_stats();
  const at::Tensor x = randn({3, k()}, 3);
  {
    const QuantizedWeight w = weight(12);
    linear(x, w);
    const PackingCacheStats first = packing_cache_stats();
    EXPECT_EQ(first.entries, before.entries + 1);
    EXPECT_GT(first.bytes, before.bytes);
    for (int i = 0; i < 3; ++i) linear(x, w);
    linear(randn({200, k()}, 3), w);
    EXPECT_EQ(packing_cache_stats().packed, first.packed);
  }
  const PackingCacheStats after = packing_cache_stats();
  EXPECT_EQ(after.entries, before.entries);
  EXPECT_EQ(after.bytes, before.bytes);
}

TEST_P(LinearFormat, SeesThatAPartWasWritten) {
  const QuantizedWeight a = weight(12, 1), b = weight(12, 2);
  const at::Tensor x = randn({3, k()}, 3);
  const at::Tensor wanted = linear(x, b).clone();
  linear(x, a);
  const size_t entries = packing_cache_stats().entries;
  for (const auto& [name, part] : a.parts) a.part(name).copy_(b.part(name));
  EXPECT_TRUE(linear(x, a).equal(wanted));
  EXPECT_EQ(packing_cache_stats().entries, entries);  // the old block is gone
}

TEST_P(LinearFormat, ThreadsMayCallFirstAtOnce) {
  const at::Tensor x = randn({3, k()}, 3);
  for (uint64_t round = 0; round < 5; ++round) {
    const QuantizedWeight w = weight(200, round);
    std::vector<at::Tensor> results(4);
    std::vector<std::thread> threads;
    for (at::Tensor& result : results) threads.emplace_back([&] { result = linear(x, w); });
    for (std::thread& thread : threads) thread.join();
    for (const at::Tensor& result : results) EXPECT_TRUE(result.equal(results[0]));
    expect_right(x, w, {});
  }
}

std::vector<Case> cases() {
  return {
      {Int8WeightOnlyConfig{}},
      {Int8DynamicActivationInt8WeightConfig{}, 0.51},
      {Int8DynamicActivationInt8WeightConfig{true, 8}, 0.51},
      {Int8DynamicActivationInt8WeightConfig{false, 7}, 0.51},
      {Int8DynamicActivationInt8WeightConfig{true, 7}, 0.51},
      {Int4WeightOnlyConfig{}},
      {Int4WeightOnlyConfig{32, false}},
      {Int4WeightOnlyConfig{64, true}},
      {Int4WeightOnlyConfig{256, false}, 0, 512},
      {Int4WeightOnlyConfig{32, true, Int4Activations::kInt8}, 0.51},
      {Int4WeightOnlyConfig{64, false, Int4Activations::kInt8}, 0.51},
      {Float8WeightOnlyConfig{}},
      {Float8WeightOnlyConfig{Granularity::kPerTensor}},
      {Float8DynamicActivationFloat8WeightConfig{}, 127 * 0.064},
      {Float8DynamicActivationFloat8WeightConfig{Granularity::kPerTensor}, 127 * 0.064},
      {IntxWeightOnlyConfig{2, 32, true}},
      {IntxWeightOnlyConfig{3, 64, false}},
      {IntxWeightOnlyConfig{4, 0, true}},
      {IntxWeightOnlyConfig{5, 64, false}},
      {IntxWeightOnlyConfig{5, 0, false}, 0, 61},
      {IntxWeightOnlyConfig{6, 32, true}},
      {IntxWeightOnlyConfig{7, 0, false}, 0, 7},
      {IntxWeightOnlyConfig{8, 0, true}, 0, 1},
      {IntxWeightOnlyConfig{8, 0, false}},
      {Bf16WeightOnlyConfig{}},
      {Bf16WeightOnlyConfig{}, 0, 61},
      {Int8WeightOnlyConfig{}, 0, 1},
      {Int8DynamicActivationInt8WeightConfig{}, 0.51, 1},
      {Float8WeightOnlyConfig{}, 0, 1},
  };
}

INSTANTIATE_TEST_SUITE_P(Builtin, LinearFormat, testing::ValuesIn(cases()));

}  // namespace
}  // namespace halftone
