// Fake quantization against what it stands for: the weight formats' own integers, the kernels of dynamic
// schemes, static int8, and PyTorch's fake-quantize operators.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include "graph/test_support.h"
#include "halftone/ptq/ptq.h"
#include "halftone/quant/qat.h"
#include "quant/fake_quantize/fake_quantizer.h"
#include "quant/ptq/quantize_weight.h"

namespace halftone {
namespace {

/// The tensors are small: threads would only wait for each other.
const bool one_thread = (at::set_num_threads(1), true);

at::Tensor noise(at::IntArrayRef sizes, uint64_t seed) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return at::randn(sizes, generator, at::kFloat);
}

at::Tensor variable(const at::Tensor& tensor) {
  return tensor.detach().clone().requires_grad_(true);
}

std::vector<QuantConfig> integer_configs() {
  std::vector<QuantConfig> configs{"int8wo",
                                   "int8dq",
                                   "int8dq-7bit",
                                   "int4wo",
                                   "int4wo:64",
                                   "int4wo-int8act",
                                   Int4WeightOnlyConfig{.symmetric = false},
                                   Int8DynamicActivationInt8WeightConfig{.symmetric_activations = true}};
  for (int bits = 2; bits <= 8; ++bits) {
    for (const int group : {0, 32, 64}) {
      for (const bool symmetric : {true, false})
        configs.push_back(IntxWeightOnlyConfig{bits, group, symmetric});
    }
  }
  return configs;
}

FakeQuantizer quantizer_for(const QuantConfig& config, const at::Tensor& weight, QatOptions options = {}) {
  return {affine_scheme(config, weight.scalar_type(), "fc"), options, weight, "fc"};
}

TEST(FakeQuantize, GivesWhatTheFormatsRestoreBitForBit) {
  for (const QuantConfig& config : integer_configs()) {
    for (const c10::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
      for (const int64_t k : {96, 100, 7}) {
        SCOPED_TRACE(config.describe() + " " + c10::toString(type) + " " + std::to_string(k));
        at::Tensor weight = (noise({35, k}, 3) * 0.2).to(type);
        weight[4].zero_();
        weight[5][2] = 3;
        const QuantizedWeight stored = quantize_weight(weight, config, "fc");
        const at::Tensor expected = stored.format->dequantize(stored).to(type);
        FakeQuantizer quantizer = quantizer_for(config, weight);
        const at::Tensor faked = quantizer.weight(weight, 0);
        EXPECT_EQ(faked.scalar_type(), type);
        EXPECT_TRUE(faked.equal(expected)) << (faked - expected).abs().max().item<float>();
        EXPECT_FALSE(faked.equal(weight));
        for (const auto& [name, part] : quantizer.quantized(weight).parts)
          EXPECT_TRUE(part.view(at::kByte).equal(stored.part(name).view(at::kByte))) << name;
      }
    }
  }
}

TEST(FakeQuantize, RowsAreWhatTheDynamicKernelsMultiply) {
  const std::pair<QuantConfig, std::pair<bool, int64_t>> cases[] = {
      {"int8dq", {false, 0}},
      {Int8DynamicActivationInt8WeightConfig{.symmetric_activations = true}, {true, 0}},
      {"int4wo-int8act", {true, 32}}};
  for (const auto& [config, rule] : cases) {
    SCOPED_TRACE(config.describe());
    const QuantizedWeight weight = quantize_weight(noise({40, 80}, 1), config, "fc");
    const at::Tensor x = noise({2, 9, 80}, 2) * 3;
    const at::Tensor faked = fake_quantize_rows(x, rule.first, rule.second);
    const at::Tensor restored = weight.format->dequantize(weight);
    const at::Tensor exact = at::matmul(faked.to(at::kDouble), restored.to(at::kDouble).t());
    const at::Tensor bound =
        at::matmul(faked.to(at::kDouble).abs(), restored.to(at::kDouble).abs().t()) * 1e-5;
    const at::Tensor kernel = weight.format->linear(x, weight, std::nullopt);
    EXPECT_TRUE(((kernel - exact).abs() <= bound).all().item<bool>());
    EXPECT_GT((faked - x).abs().max().item<float>(), 1e-4);
  }
}

TEST(FakeQuantize, AgreesWithTorchPerTensorAndPerChannel) {
  for (const int bits : {2, 3, 4, 5, 6, 7, 8}) {
    const int64_t low = -(1 << (bits - 1)), high = (1 << (bits - 1)) - 1;
    const FakeQuantizeOptions options{.quant_min = low, .quant_max = high};
    const at::Tensor x = variable(noise({12, 5, 3}, 4)), same_x = variable(x);
    const at::Tensor dy = noise({12, 5, 3}, 5);
    const double scale = 2.0 / static_cast<double>(high - low);
    const at::Tensor y = fake_quantize(x, at::scalar_tensor(scale), at::scalar_tensor(1, at::kInt), options);
    const at::Tensor expected = at::fake_quantize_per_tensor_affine(same_x, scale, 1, low, high);
    EXPECT_TRUE(y.equal(expected)) << bits;
    y.backward(dy);
    expected.backward(dy);
    EXPECT_TRUE(x.grad().equal(same_x.grad())) << bits;
    EXPECT_GT(x.grad().eq(0).sum().item<int64_t>(), 0) << "nothing was clamped";

    const at::Tensor scales = noise({12}, 6).abs() * 0.3 + 0.02,
                     zeros = at::arange(12, at::kInt).remainder(3) - 1;
    const at::Tensor by_channel = variable(x), same = variable(x);
    const at::Tensor z = fake_quantize(by_channel, scales, zeros, options);
    const at::Tensor z_expected = at::fake_quantize_per_channel_affine(same, scales, zeros, 0, low, high);
    EXPECT_TRUE(z.equal(z_expected)) << bits;
    z.backward(dy);
    z_expected.backward(dy);
    EXPECT_TRUE(by_channel.grad().equal(same.grad())) << bits;
  }
}

TEST(FakeQuantize, LearnsScalesAsTorchDoes) {
  const at::Tensor x = variable(noise({16, 24}, 7)), same_x = variable(x);
  const at::Tensor scale = variable(noise({16}, 8).abs() * 0.1 + 0.05), same_scale = variable(scale);
  const at::Tensor dy = noise({16, 24}, 9);
  const at::Tensor y =
      fake_quantize(x, scale, std::nullopt, {.quant_min = -8, .quant_max = 7, .scale_gradient = 0.25});
  const at::Tensor expected = at::_fake_quantize_learnable_per_channel_affine(
      same_x, same_scale, at::zeros({16}), 0, -8, 7, /*grad_factor=*/0.25);
  EXPECT_TRUE(at::allclose(y, expected, 1e-6, 1e-6));
  y.backward(dy);
  expected.backward(dy);
  EXPECT_TRUE(x.grad().equal(same_x.grad()));
  EXPECT_TRUE(at::allclose(scale.grad(), same_scale.grad(), 1e-4, 1e-5));
  EXPECT_GT(scale.grad().abs().min().item<float>(), 0);
}

// In groups, against the same formula written with autograd's own operators, rounding replaced by a detour.
TEST(FakeQuantize, GradientsInGroupsAreThoseOfTheFormula) {
  const at::Tensor x = variable(noise({6, 64}, 10)), same_x = variable(x);
  const at::Tensor scale = variable(noise({6, 2}, 11).abs() * 0.1 + 0.1), same_scale = variable(scale);
  const at::Tensor dy = noise({6, 64}, 12);
  fake_quantize(x, scale, std::nullopt, {.quant_min = -8, .quant_max = 7, .group_size = 32}).backward(dy);
  const at::Tensor groups = same_x.view({6, 2, 32}), s = same_scale.unsqueeze(2);
  const at::Tensor steps = groups / s;
  const at::Tensor rounded = steps + (steps.round() - steps).detach();
  (rounded.clamp(-8, 7) * s).view({6, 64}).backward(dy);
  EXPECT_TRUE(at::allclose(x.grad(), same_x.grad(), 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(scale.grad(), same_scale.grad(), 1e-4, 1e-5));
}

TEST(FakeQuantize, RowsLetGradientsThrough) {
  const at::Tensor x = variable(noise({4, 40}, 13)), dy = noise({4, 40}, 14);
  fake_quantize_rows(x).backward(dy);
  EXPECT_TRUE(x.grad().equal(dy));
}

// torch.ao's static int8: weights exactly, activations but for ties, where the graph's operator adds the zero
// point before it rounds (halftone/ptq/ptq.h) and fake quantization after it, as torch.ao's own two do.
TEST(FakeQuantize, AgreesWithStaticInt8) {
  const at::Tensor weight = noise({10, 3, 3, 3}, 15);
  for (const int bits : {7, 8}) {
    const auto qconfig =
        static_int8_mapping({.activation = 7, .weight = bits}).find("", {"torch.nn.Conv2d"}, 0);
    ASSERT_TRUE(qconfig.has_value());
    const ptq::IntegerWeight stored = ptq::quantize_stored_weight(weight, qconfig->weight, false);
    const at::Tensor scales = stored.qparams.scale.view({10, 1, 1, 1});
    const at::Tensor faked =
        fake_quantize(weight, stored.qparams.scale, std::nullopt,
                      {.quant_min = stored.range.first, .quant_max = stored.range.second});
    EXPECT_TRUE(faked.equal(stored.values.to(at::kFloat) * scales)) << bits;
  }
  static const auto quantize =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("halftone::quantize_per_tensor", "")
          .typed<at::Tensor(const at::Tensor&, double, int64_t, int64_t, int64_t, c10::ScalarType)>();
  const float scale = 0.05f;
  const at::Tensor x = noise({10000}, 16);
  const at::Tensor q = quantize.call(x, scale, 61, 0, 127, at::kByte);
  const at::Tensor faked = fake_quantize(x, at::scalar_tensor(scale), at::scalar_tensor(61, at::kInt),
                                         {.quant_min = 0, .quant_max = 127});
  const at::Tensor restored = (q.to(at::kFloat) - 61) * scale;
  EXPECT_LE((faked - restored).abs().max().item<float>(), scale * 1.0001f);
  EXPECT_LE(faked.ne(restored).sum().item<int64_t>(), 2);
}

TEST(FakeQuantize, KeepsSizesTypesAndNaN) {
  const at::Tensor scale = at::scalar_tensor(0.5);
  EXPECT_EQ(fake_quantize(at::scalar_tensor(0.8), scale, {}).item<float>(), 1.0f);
  EXPECT_EQ(fake_quantize(at::empty({0, 4}), at::ones({0}), {}).sizes(), (at::IntArrayRef{0, 4}));
  const at::Tensor x = at::tensor({NAN, INFINITY, -INFINITY, -0.1f});
  const at::Tensor y = fake_quantize(x, scale, {});
  EXPECT_TRUE(std::isnan(y[0].item<float>()));
  EXPECT_EQ(y[1].item<float>(), 3.5f);
  EXPECT_EQ(y[2].item<float>(), -4.0f);
  EXPECT_EQ(y[3].item<float>(), 0.0f);
  const at::Tensor by_columns = noise({8, 6}, 1).t();
  EXPECT_TRUE(fake_quantize(by_columns, scale, {}).equal(fake_quantize(by_columns.contiguous(), scale, {})));
}

TEST(FakeQuantize, RefusesWhatDoesNotFit) {
  const at::Tensor x = at::ones({4, 64});
  const auto refuses = [&](const at::Tensor& scale, const FakeQuantizeOptions& options) {
    try {
      fake_quantize(x, scale, std::nullopt, options);
    } catch (const Error& error) {
      return error.code() == ErrorCode::kInvalidArgument &&
             std::string(error.what()).find("fake_quantize") != std::string::npos;
    }
    return false;
  };
  EXPECT_TRUE(refuses(at::ones({3}), {}));
  EXPECT_TRUE(refuses(at::ones({4, 2}), {}));
  EXPECT_TRUE(refuses(at::ones({4}), {.group_size = 32}));
  EXPECT_TRUE(refuses(at::ones({}), {.group_size = 32}));
  EXPECT_TRUE(refuses(at::ones({4}), {.quant_min = 3, .quant_max = 3}));
  EXPECT_TRUE(refuses(at::ones({4}), {.quant_min = 0, .quant_max = 256}));
  EXPECT_TRUE(refuses(at::ones({4, 0}), {.group_size = -1}));
  EXPECT_FALSE(refuses(at::ones({4, 2}), {.group_size = 32}));
  EXPECT_THROW(affine_scheme("fp8wo", at::kFloat, "fc"), Error);
  EXPECT_THROW(affine_scheme(Int4WeightOnlyConfig{.rounding = Int4Rounding::kSearch}, at::kFloat, "fc"),
               Error);
}

TEST(FakeQuantizer, AveragesRangesAndFreezesThem) {
  const at::Tensor first = noise({4, 64}, 20), second = first * 3;
  QatOptions options{.scales = QatScales::kMovingAverage, .averaging_constant = 0.25, .freeze_after = 2};
  FakeQuantizer quantizer = quantizer_for("int4wo", first, options);
  const auto value = [&](const char* name) { return quantizer.named_buffers()[name].clone(); };
  const at::Tensor start = value("max_val");
  EXPECT_TRUE(start.equal(first.view({4, 2, 32}).amax(2)));
  quantizer.eval();
  quantizer.weight(second, 0);
  EXPECT_TRUE(value("max_val").equal(start)) << "observed in evaluation";
  quantizer.train();
  quantizer.weight(second, 0);
  const at::Tensor after = start + (second.view({4, 2, 32}).amax(2) - start) * 0.25;
  EXPECT_TRUE(value("max_val").equal(after));
  quantizer.weight(second, 0);
  const at::Tensor twice = value("max_val");
  EXPECT_FALSE(twice.equal(after));
  quantizer.weight(second, 0);
  EXPECT_TRUE(value("max_val").equal(twice)) << "not frozen";
  EXPECT_EQ(value("steps").item<int64_t>(), 3);
}

TEST(FakeQuantizer, PartsOfRowsAreTheWhole) {
  const at::Tensor weight = noise({48, 64}, 21);
  for (const QatScales scales : {QatScales::kRange, QatScales::kMovingAverage, QatScales::kLearned}) {
    FakeQuantizer whole = quantizer_for("int4wo", weight, {.scales = scales});
    FakeQuantizer parts = quantizer_for("int4wo", weight, {.scales = scales});
    std::vector<at::Tensor> rows;
    for (int64_t first = 0; first < 48; first += 16)
      rows.push_back(parts.weight(weight.narrow(0, first, 16), first));
    EXPECT_TRUE(at::cat(rows).equal(whole.weight(weight, 0)));
    EXPECT_EQ(parts.named_buffers()["steps"].item<int64_t>(), 1);
  }
}

}  // namespace
}  // namespace halftone
