// Every scheme, interpreted and compiled: activations that are huge, infinite or NaN give what
// docs/schemes.md promises, and numbers of inputs that groups do not divide are no special case.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "graph/test_support.h"
#include "halftone/compile.h"
#include "halftone/quantize.h"
#include "halftone/weight_format.h"

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
    const bool dynamic = scheme.config.type().find("Dynamic") != std::string::npos;
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

}  // namespace
}  // namespace halftone
