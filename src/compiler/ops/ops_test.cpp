// Each fused operator against the composition of plain ATen operators that it stands for.
#include "compiler/ops/ops.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "halftone/base/error.h"
#include "quant/weight/ops.h"

namespace halftone {
namespace {

bool near(const at::Tensor& a, const at::Tensor& b, double tolerance = 1e-5) {
  return a.sizes() == b.sizes() && at::allclose(a, b, tolerance, tolerance);
}

TEST(QuantizeRows, BytesScalesAndZeroPointsRestoreTheRows) {
  const at::Tensor x = at::randn({2, 3, 64}) * 3 + 1;
  for (const bool symmetric : {false, true}) {
    const ops::QuantizedRows rows = ops::quantize_rows(x, symmetric);
    EXPECT_EQ(rows.q.sizes(), x.sizes());
    EXPECT_EQ(rows.q.scalar_type(), symmetric ? at::kChar : at::kByte);
    EXPECT_EQ(rows.scale.sizes(), at::IntArrayRef({6}));
    EXPECT_EQ(rows.zero_point.scalar_type(), at::kInt);
    const at::Tensor error = (ops::dequantize_rows(rows) - x).abs().view({6, 64}).amax(1);
    EXPECT_TRUE((error <= rows.scale * 0.5001).all().item<bool>());
    EXPECT_EQ(symmetric, !rows.zero_point.any().item<bool>());
  }
}

TEST(QuantizeRows, TakesStridedInputsAndNoRows) {
  const at::Tensor x = at::randn({8, 5});
  EXPECT_TRUE(at::equal(ops::quantize_rows(x.t(), false).q, ops::quantize_rows(x.t().contiguous(), false).q));
  EXPECT_EQ(ops::quantize_rows(at::empty({0, 4}), true).scale.numel(), 0);
  EXPECT_EQ(ops::quantize_rows(at::empty({3, 0}), true).scale.numel(), 3);
  EXPECT_THROW(ops::quantize_rows(x.to(at::kDouble), false), Error);
}

TEST(Norm, LayerNormWithResidual) {
  const at::Tensor x = at::randn({2, 5, 32}), r = at::randn({2, 5, 32}), g = at::randn({32}),
                   b = at::randn({32});
  auto [y, sum, q, scale, zero_point] = ops::norm(x, r, g, b, "layer", 1e-5, false);
  EXPECT_TRUE(at::equal(sum, x + r));
  EXPECT_TRUE(near(y, at::layer_norm(x + r, {32}, g, b, 1e-5)));
  EXPECT_TRUE(at::equal(q, ops::quantize_rows(y, false).q));
}

TEST(Norm, RmsNormWithoutWeights) {
  const at::Tensor x = at::randn({4, 16}), g = at::randn({16});
  EXPECT_TRUE(
      near(std::get<0>(ops::norm(x, {}, {}, {}, "rms", 1e-6, true)), at::rms_norm(x, {16}, {}, 1e-6)));
  auto [y, sum, q, scale, zero_point] = ops::norm(x, {}, g, {}, "rms", 1e-6, true);
  EXPECT_TRUE(near(y, at::rms_norm(x, {16}, g, 1e-6)));
  EXPECT_TRUE(at::equal(sum, x));
  EXPECT_FALSE(sum.is_alias_of(x));
  EXPECT_THROW(ops::norm(x, {}, g, {}, "batch", 1e-6, true), Error);
}

at::Tensor spelled_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                             const at::Tensor& added, double scale) {
  at::Tensor scores = at::matmul(q, k.transpose(2, 3)) * scale;
  if (added.defined()) scores = scores + added;
  return at::matmul(scores.softmax(-1), v);
}

TEST(Attention, EveryKindOfMask) {
  const at::Tensor q = at::randn({2, 4, 5, 8}), k = at::randn({2, 4, 7, 8}), v = at::randn({2, 4, 7, 6});
  const at::Tensor keep = (at::rand({2, 1, 5, 7}) > 0.4).logical_or(at::arange(7) == 0);
  const at::Tensor added = at::where(keep, 0.0, -INFINITY).to(at::kFloat);
  EXPECT_TRUE(near(ops::attention(q, k, v, {}, false, 0.3), spelled_attention(q, k, v, {}, 0.3)));
  EXPECT_TRUE(near(ops::attention(q, k, v, keep, false, 0.3), spelled_attention(q, k, v, added, 0.3)));
  EXPECT_TRUE(near(ops::attention(q, k, v, added, false, 0.3), spelled_attention(q, k, v, added, 0.3)));
  const at::Tensor causal = at::where(at::ones({5, 7}, at::kBool).tril(), 0.0, -INFINITY).to(at::kFloat);
  EXPECT_TRUE(near(ops::attention(q, k, v, {}, true, 0.3), spelled_attention(q, k, v, causal, 0.3)));
  EXPECT_TRUE(
      near(ops::attention(q, k, v, keep, true, 0.3), spelled_attention(q, k, v, causal + added, 0.3)));
  EXPECT_TRUE(
      near(ops::attention(q, k, v, added, true, 0.3), spelled_attention(q, k, v, causal + added, 0.3)));
}

TEST(Attention, SharedKeyHeadsAndTheLayoutOfTheResult) {
  const at::Tensor q = at::randn({2, 4, 5, 8}), k = at::randn({2, 2, 7, 8}), v = at::randn({2, 2, 7, 8});
  const at::Tensor y = ops::attention(q, k, v, {}, false, 0.5);
  EXPECT_TRUE(near(y, spelled_attention(q, k.repeat_interleave(2, 1), v.repeat_interleave(2, 1), {}, 0.5)));
  EXPECT_TRUE(y.transpose(1, 2).is_contiguous());
  EXPECT_THROW(ops::attention(q[0], k[0], v[0], {}, false, 0.5), Error);
}

TEST(FusedLinear, BiasActivationResidual) {
  const at::Tensor x = at::randn({2, 3, 16}), w = at::randn({8, 16}), b = at::randn({8}),
                   r = at::randn({2, 3, 8});
  const at::Tensor s = at::linear(x, w, b);
  const std::vector<std::pair<std::string, at::Tensor>> cases = {{"none", s},
                                                                 {"relu", at::relu(s)},
                                                                 {"gelu", at::gelu(s)},
                                                                 {"gelu_tanh", at::gelu(s, "tanh")},
                                                                 {"silu", at::silu(s)}};
  for (const auto& [activation, expected] : cases) {
    auto [y, q, scale, zero_point] = ops::fused_linear({x, {}, {}, {w}, b, r, "fp32", {}, activation, true});
    EXPECT_TRUE(near(y, expected + r)) << activation;
    EXPECT_TRUE(at::equal(q, ops::quantize_rows(y, true).q));
  }
  EXPECT_THROW(ops::fused_linear({x, {}, {}, {w}, b, r, "fp32", {}, "tanh", true}), Error);
  EXPECT_THROW(ops::fused_linear({x, {}, {}, {w}, b, r, "fp33", {}, "none", true}), Error);
  EXPECT_THROW(ops::fused_linear({x, {}, {}, {w, b}, b, r, "fp32", {}, "none", true}), Error);
}

TEST(FusedLinear, RowsThatAreQuantizedAlready) {
  const at::Tensor x = at::randn({2, 3, 16}), b = at::randn({8}), scale = at::rand({8}) * 0.1;
  const at::Tensor w = at::randint(-64, 65, {8, 16}).to(at::kChar);
  const at::Tensor weight = w.to(at::kFloat) * scale.unsqueeze(1);
  for (const bool symmetric : {false, true}) {
    const ops::QuantizedRows rows = ops::quantize_rows(x, symmetric);
    const auto y = std::get<0>(ops::fused_linear(
        {rows.q, rows.scale, rows.zero_point, {w, scale}, b, {}, "int8", {7, symmetric}, "none", false}));
    EXPECT_TRUE(near(y, at::linear(ops::dequantize_rows(rows), weight, b)));
    EXPECT_THROW(
        ops::fused_linear(
            {rows.q, rows.scale, rows.zero_point, {w, scale}, b, {}, "int8_weight_only", {}, "none", false}),
        Error);
  }
}

TEST(FusedLinear, EveryQuantizedFormatIsItsPlainOperator) {
  const at::Tensor x = at::randn({2, 3, 64}), b = at::randn({8}), scale = at::rand({8}) * 0.1;
  const at::Tensor w = at::randint(-64, 65, {8, 64}).to(at::kChar);
  const at::Tensor nibbles = at::randint(0, 256, {8, 32}).to(at::kByte), groups = at::rand({8, 2}) * 0.1;
  const at::Tensor zeros = at::randint(-8, 8, {8, 2}).to(at::kChar);
  const at::Tensor f8 = at::randn({8, 64}).to(at::kFloat8_e4m3fn);
  const auto fused = [&](std::vector<at::Tensor> parts, std::string_view format,
                         std::vector<int64_t> attributes) {
    return std::get<0>(ops::fused_linear(
        {x, {}, {}, std::move(parts), b, {}, format, std::move(attributes), "none", false}));
  };
  EXPECT_TRUE(
      at::equal(fused({w, scale}, "int8_weight_only", {}), ops::int8_weight_only_linear(x, w, scale, b)));
  EXPECT_TRUE(at::equal(fused({w, scale}, "int8", {7, 1}), ops::int8_linear(x, w, scale, b, 7, true)));
  EXPECT_TRUE(at::equal(fused({nibbles, groups}, "int4", {32, 0, 0}),
                        ops::int4_linear(x, nibbles, groups, {}, b, 32, false)));
  EXPECT_TRUE(at::equal(fused({nibbles, groups, zeros}, "int4", {32, 0, 0}),
                        ops::int4_linear(x, nibbles, groups, zeros, b, 32, false)));
  EXPECT_TRUE(at::equal(fused({f8, scale}, "fp8", {1, 0}), ops::fp8_linear(x, f8, scale, b, true, false)));
  const at::Tensor bf16 = at::randn({8, 64}).to(at::kBFloat16);
  EXPECT_TRUE(at::equal(fused({bf16}, "bf16", {}), ops::bf16_linear(x, bf16, b)));
}

TEST(FusedLinear, QuantizedRowsGiveWhatTheLinearGivesThatQuantizesItself) {
  const at::Tensor x = at::randn({5, 64}), w = at::randint(-64, 65, {8, 64}).to(at::kChar),
                   scale = at::rand({8}) * 0.1;
  const ops::QuantizedRows rows = ops::quantize_rows(x, false);
  const auto y = std::get<0>(ops::fused_linear(
      {rows.q, rows.scale, rows.zero_point, {w, scale}, {}, {}, "int8", {7, 0}, "none", false}));
  EXPECT_TRUE(near(y, ops::int8_linear(x, w, scale, {}, 7, false), 1e-6));
}

TEST(FusedOperators, MetaKernelsGiveTheSizesTypesAndStridesOfTheCpuKernels) {
  const auto same = [](const at::Tensor& meta, const at::Tensor& cpu) {
    EXPECT_EQ(meta.sizes(), cpu.sizes());
    EXPECT_EQ(meta.strides(), cpu.strides());
    EXPECT_EQ(meta.scalar_type(), cpu.scalar_type());
    EXPECT_TRUE(meta.is_meta());
  };
  const auto all_same = [&](const auto& meta, const auto& cpu) {
    std::apply([&](const auto&... m) { std::apply([&](const auto&... c) { (same(m, c), ...); }, cpu); },
               meta);
  };
  const auto meta = [](const at::Tensor& t) { return t.to(at::kMeta); };
  const at::Tensor x = at::randn({2, 3, 16}), w = at::randn({8, 16}), r = at::randn({2, 3, 8}),
                   g = at::randn({16});
  all_same(ops::norm(meta(x), {}, meta(g), {}, "rms", 1e-5, true),
           ops::norm(x, {}, g, {}, "rms", 1e-5, true));
  all_same(ops::fused_linear({meta(x), {}, {}, {meta(w)}, {}, meta(r), "fp32", {}, "relu", false}),
           ops::fused_linear({x, {}, {}, {w}, {}, r, "fp32", {}, "relu", false}));
  const at::Tensor q = at::randn({2, 4, 5, 8}), k = at::randn({2, 4, 7, 8}), v = at::randn({2, 4, 7, 6});
  same(ops::attention(meta(q), meta(k), meta(v), {}, false, 1.0), ops::attention(q, k, v, {}, false, 1.0));
  const ops::QuantizedRows a = ops::quantize_rows(meta(x), true), b = ops::quantize_rows(x, true);
  same(a.q, b.q);
  same(a.scale, b.scale);
  same(a.zero_point, b.zero_point);
}

}  // namespace
}  // namespace halftone
