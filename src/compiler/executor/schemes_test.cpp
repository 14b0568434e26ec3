// Every scheme, interpreted and compiled: activations that are huge, infinite or NaN give what
// docs/schemes.md promises, and numbers of inputs that groups do not divide are no special case.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "graph/test_support.h"
#include "halftone/compile/compile.h"
#include "halftone/quant/quantize.h"
#include "halftone/quant/weight_format.h"

namespace halftone {
namespace {

constexpr int64_t kOut = 40;

struct SchemeCase {
  std::string name;
  QuantConfig config;
  bool quantizes_x;
};

std::vector<SchemeCase> scheme_cases() {
  std::vector<SchemeCase> all;
  for (const Scheme& scheme : schemes()) {
    if (scheme.config.is_noquant()) continue;
    const auto int4 = scheme.config.as<Int4WeightOnlyConfig>();
    const bool dynamic = scheme.config.type().find("Dynamic") != std::string::npos ||
                         (int4 && int4->activations == Int4Activations::kInt8);
    all.push_back({scheme.names.front(), scheme.config, dynamic});
  }
  all.push_back({"int8dq symmetric", Int8DynamicActivationInt8WeightConfig{true}, true});
  all.push_back({"int8dq 7 bits", Int8DynamicActivationInt8WeightConfig{.weight_bits = 7}, true});
  all.push_back({"int4wo zeros", Int4WeightOnlyConfig{.symmetric = false}, false});
  all.push_back({"int4wo int8", Int4WeightOnlyConfig{.activations = Int4Activations::kInt8}, true});
  all.push_back({"intx 5", IntxWeightOnlyConfig{.bits = 5, .group_size = 32}, false});
  all.push_back({"intx 6 rows", IntxWeightOnlyConfig{.bits = 6, .group_size = 0}, false});
  return all;
}

struct Quantized {
  std::shared_ptr<GraphModule> module;
  at::Tensor weight, bias;  ///< what the quantized weight stands for
};

Quantized quantized_linear(const QuantConfig& config, int64_t m, int64_t k) {
  const at::Tensor weight = at::randn({kOut, k}).mul_(0.1), bias = at::randn({kOut});
  const std::string text = fmt::format(
      R"(graph(%w: parameter "fc.weight" f32[{1}, {2}], %b: parameter "fc.bias" f32[{1}], %x: user "x" f32[{0}, {2}]) {{
  %y: f32[{0}, {1}] = aten::linear(%x, %w, %b)  @ "fc" "Linear"
  %r: f32[{0}, {1}] = aten::relu(%y)
  %l: f32[{0}, {1}] = aten::linear(%x, %w, %b)  @ "fc" "Linear"
  return %r, %l
}})",
      m, kOut, k);
  auto module = module_from_text(text, {{"fc.weight", weight}, {"fc.bias", bias}});
  quantize_(*module, config);
  const QuantizedWeight parts = quantize_weight(weight, config, "fc");
  return {module, parts.format->dequantize(parts), bias};
}

/// The results of both ways, which must be the same: relu(y) and y.
std::vector<at::Tensor> run_both_ways(const std::shared_ptr<GraphModule>& module, const at::Tensor& x) {
  const auto interpreted = Session(module).run({x}), compiled = compile(module)->run({x});
  std::vector<at::Tensor> results;
  for (size_t i = 0; i < interpreted.size(); ++i) {
    const at::Tensor a = interpreted[i].toTensor(), b = compiled[i].toTensor();
    EXPECT_TRUE(at::equal(at::isnan(a), at::isnan(b)) && at::equal(at::isinf(a), at::isinf(b)));
    EXPECT_TRUE(at::allclose(a, b, 1e-4, 1e-4, /*equal_nan=*/true));
    results.push_back(b);
  }
  return results;
}

void expect_same_kinds(const at::Tensor& found, const at::Tensor& wanted) {
  EXPECT_TRUE(at::equal(at::isnan(found), at::isnan(wanted)));
  EXPECT_TRUE(at::equal(found == INFINITY, wanted == INFINITY));
  EXPECT_TRUE(at::equal(found == -INFINITY, wanted == -INFINITY));
}

/// As if one of them were infinite: what relu keeps of it.
void expect_relu(const at::Tensor& activated, const at::Tensor& y) {
  EXPECT_TRUE(at::allclose(activated, at::relu(y), 1e-6, 1e-6, /*equal_nan=*/true));
}

TEST(Schemes, NanAndInfinityAreNeverAPlausibleNumber) {
  at::manual_seed(3);
  for (const SchemeCase& scheme : scheme_cases()) {
    for (const int64_t m : {1, 40}) {
      for (const int64_t k : {64, 100}) {
        const Quantized model = quantized_linear(scheme.config, m, k);
        const at::Tensor clean = at::randn({m, k});
        const at::Tensor undisturbed = run_both_ways(model.module, clean).at(1);
        for (const float bad : {NAN, INFINITY, -INFINITY}) {
          SCOPED_TRACE(fmt::format("{} m {} k {} with {}", scheme.name, m, k, bad));
          at::Tensor x = clean.clone();
          const int64_t row = m - 1;
          x[row][k - 2] = bad;
          const std::vector<at::Tensor> y = run_both_ways(model.module, x);
          expect_relu(y[0], y[1]);
          const at::Tensor damaged = y[1][row];
          if (scheme.quantizes_x) {
            EXPECT_TRUE(at::isnan(damaged).all().item<bool>());
          } else {
            expect_same_kinds(damaged, at::linear(x[row], model.weight, model.bias));
            EXPECT_FALSE(at::isfinite(damaged).any().item<bool>());
          }
          EXPECT_TRUE(at::allclose(y[1].narrow(0, 0, row), undisturbed.narrow(0, 0, row), 1e-4, 1e-4));
        }
      }
    }
  }
}

TEST(Schemes, TheLargestFloatsDoNotOverflowOnTheWay) {
  at::manual_seed(4);
  for (const SchemeCase& scheme : scheme_cases()) {
    for (const int64_t m : {1, 40}) {
      for (const int64_t k : {64, 100}) {
        SCOPED_TRACE(fmt::format("{} m {} k {}", scheme.name, m, k));
        const Quantized model = quantized_linear(scheme.config, m, k);
        at::Tensor x = at::randn({m, k});
        x[0][5] = 3e38F;
        x[0][k - 1] = -2e38F;
        const std::vector<at::Tensor> y = run_both_ways(model.module, x);
        expect_relu(y[0], y[1]);
        const at::Tensor wide = x.to(at::kDouble), weight = model.weight.to(at::kDouble);
        const at::Tensor exact = at::linear(wide, weight, model.bias.to(at::kDouble));
        // The widest steps: 5e38 / 255 for bytes, a sixteenth of each number for float8.
        const at::Tensor largest = wide.abs().amax(1, true);
        const at::Tensor rounding =
            scheme.quantizes_x ? (largest * 2 / 255 * 0.51 + wide.abs() * 0.063) : wide.abs() * 1e-5;
        const at::Tensor bound = at::matmul(rounding, weight.abs().t()) + 1e-4;
        EXPECT_TRUE(at::isfinite(y[1]).all().item<bool>());
        EXPECT_LE(((y[1].to(at::kDouble) - exact).abs() / bound).max().item<double>(), 1.0);
      }
    }
  }
}

TEST(Schemes, CompiledModelsTakeShorterGroups) {
  at::manual_seed(5);
  for (const int group : {32, 128}) {
    for (const auto activations : {Int4Activations::kFloat, Int4Activations::kInt8}) {
      for (const int64_t k : {100, 33, 31, 1}) {
        for (const int64_t m : {1, 3, 40}) {
          const Quantized model = quantized_linear(Int4WeightOnlyConfig{group, false, activations}, m, k);
          const at::Tensor x = at::randn({m, k});
          const at::Tensor y = run_both_ways(model.module, x).at(1);
          const at::Tensor exact = at::linear(x, model.weight, model.bias);
          EXPECT_LE((y - exact).abs().max().item<double>(),
                    activations == Int4Activations::kFloat ? 1e-4 : 0.15)
              << group << " " << k << " " << m;
        }
      }
    }
  }
}

/// A small residual network with a depthwise convolution and batch norm.
std::shared_ptr<GraphModule> image_model(const TensorMap& tensors) {
  return module_from_text(R"(
graph(%w: parameter "stem.weight" f32[8, 3, 3, 3], %d: parameter "depth.weight" f32[8, 1, 3, 3], %db: parameter "depth.bias" f32[8],
      %p: parameter "point.weight" f32[8, 8, 1, 1], %g: parameter "norm.weight" f32[8], %b: parameter "norm.bias" f32[8],
      %m: buffer "norm.running_mean" f32[8], %v: buffer "norm.running_var" f32[8], %x: user "x" f32[2, 3, 14, 14]) {
  %s: f32[2, 8, 14, 14] = aten::conv2d(%x, %w, None, [1, 1], [1, 1])  @ "stem" "Conv2d"
  %n: f32[2, 8, 14, 14] = aten::batch_norm(%s, %g, %b, %m, %v, false, 0.1, 1e-05, true)  @ "norm" "BatchNorm2d"
  %r: f32[2, 8, 14, 14] = aten::relu(%n)
  %e: f32[2, 8, 14, 14] = aten::conv2d(%r, %d, %db, [1, 1], [1, 1], [1, 1], 8)  @ "depth" "Conv2d"
  %f: f32[2, 8, 14, 14] = aten::conv2d(%e, %p)  @ "point" "Conv2d"
  %y: f32[2, 8, 14, 14] = aten::add.Tensor(%f, %r)
  return %y
})",
                          tensors);
}

TEST(Schemes, CompiledConvolutionsAreThoseOfTheRestoredWeights) {
  at::manual_seed(6);
  TensorMap tensors{{"stem.weight", at::randn({8, 3, 3, 3})}, {"depth.weight", at::randn({8, 1, 3, 3})},
                    {"depth.bias", at::randn({8})},           {"point.weight", at::randn({8, 8, 1, 1})},
                    {"norm.weight", at::rand({8})},           {"norm.bias", at::randn({8})},
                    {"norm.running_mean", at::randn({8})},    {"norm.running_var", at::rand({8}) + 0.5}};
  const auto quantized = image_model(tensors);
  const at::Tensor x = at::randn({2, 3, 14, 14}), fp32 = Session(quantized).run({x}).at(0).toTensor();
  EXPECT_EQ(quantize_(*quantized, "int8wo").count(LayerReport::Outcome::kQuantized), 3U);
  for (const char* name : {"stem.weight", "depth.weight", "point.weight"}) {
    const at::Tensor weight = tensors.at(name);
    const QuantizedWeight parts = quantize_weight(weight.flatten(1), "int8wo", name);
    tensors.insert_or_assign(name, parts.format->dequantize(parts).view(weight.sizes()));
  }
  const auto plain = image_model(tensors);
  // The same steps on the same floats: not slower, and the same to the last bit.
  const at::Tensor got = compile(quantized)->run({x}).at(0).toTensor();
  EXPECT_TRUE(at::equal(got, compile(plain)->run({x}).at(0).toTensor()));
  EXPECT_TRUE(at::allclose(got, Session(quantized).run({x}).at(0).toTensor(), 1e-4, 1e-4));
  EXPECT_GT(at::cosine_similarity(got.flatten(), fp32.flatten(), 0).item<double>(), 0.9999);
  // Without the pass the weight is restored in each run: slower, and right too.
  const auto slow = compile(quantized, {.disabled_passes = {"restore_weights"}});
  EXPECT_TRUE(at::allclose(slow->run({x}).at(0).toTensor(), got, 1e-4, 1e-4));
}

}  // namespace
}  // namespace halftone
