// quantize_ on convolutions: their weights are stored in 8 bits. The oracle is ATen's convolution with the
// weight that the integers stand for, restored here.
#include <ATen/ATen.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include "graph/test_support.h"
#include "halftone/quant/quantize.h"
#include "halftone/quant/weight_format.h"
#include "quant/graph/test_models.h"

namespace halftone {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Outcome = LayerReport::Outcome;

struct Convolution {
  const char* name;
  std::vector<int64_t> x, weight, y;
  const char* call;  ///< of %x, %w and %b
};

std::vector<Convolution> convolutions() {
  return {
      {"conv1d", {2, 6, 20}, {8, 6, 3}, {2, 8, 20}, "aten::conv1d(%x, %w, %b, [1], [1])"},
      {"conv1d_same", {2, 6, 20}, {8, 6, 3}, {2, 8, 20}, "aten::conv1d.padding(%x, %w, %b, [1], \"same\")"},
      {"conv1d_groups", {2, 6, 20}, {8, 3, 1}, {2, 8, 20}, "aten::conv1d(%x, %w, %b, [1], [0], [1], 2)"},
      {"conv2d", {1, 3, 10, 9}, {5, 3, 3, 2}, {1, 5, 8, 8}, "aten::conv2d(%x, %w, %b)"},
      {"conv2d_one", {1, 6, 4, 4}, {5, 6, 1, 1}, {1, 5, 4, 4}, "aten::conv2d(%x, %w, %b)"},
      {"conv2d_strided", {1, 3, 10, 10}, {5, 3, 3, 3}, {1, 5, 4, 4}, "aten::conv2d(%x, %w, %b, [2, 2])"},
      {"depthwise",
       {1, 6, 8, 8},
       {6, 1, 3, 3},
       {1, 6, 8, 8},
       "aten::conv2d(%x, %w, %b, [1, 1], [1, 1], [1, 1], 6)"},
      {"dilated",
       {1, 4, 9, 9},
       {6, 2, 3, 3},
       {1, 6, 5, 5},
       "aten::conv2d(%x, %w, %b, [1, 1], [0, 0], [2, 2], 2)"},
      {"conv3d", {1, 2, 4, 4, 4}, {3, 2, 2, 2, 2}, {1, 3, 3, 3, 3}, "aten::conv3d(%x, %w, %b)"},
      {"convolution",
       {1, 3, 6, 6},
       {5, 3, 3, 3},
       {1, 5, 4, 4},
       "aten::convolution(%x, %w, %b, [1, 1], [0, 0], [1, 1], false, [0, 0], 1)"},
  };
}

std::shared_ptr<GraphModule> model_of(const Convolution& c, const at::Tensor& weight,
                                      const at::Tensor& bias) {
  const std::string text = fmt::format(
      R"(graph(%w: parameter "conv.weight" f32[{}] grad, %b: parameter "conv.bias" f32[{}] grad, %x: user "x" f32[{}]) {{
  %y: f32[{}] = {}  @ "conv" "Conv"
  return %y
}})",
      fmt::join(c.weight, ", "), bias.size(0), fmt::join(c.x, ", "), fmt::join(c.y, ", "), c.call);
  return module_from_text(text, {{"conv.weight", weight}, {"conv.bias", bias}});
}

/// [n, …] floats: torchao's rule for 8 bits, an output channel at a time.
at::Tensor restored(const at::Tensor& weight) {
  at::Tensor result = weight.clone();
  for (int64_t i = 0; i < weight.size(0); ++i) {
    const float scale = weight[i].abs().max().item<float>() / 127.5F;
    result[i] = (weight[i] * (1.0F / scale)).round().clamp(-128, 127) * scale;
  }
  return result;
}

TEST(QuantizeConvolutions, GiveWhatTheRestoredWeightGives) {
  at::manual_seed(1);
  for (const Convolution& c : convolutions()) {
    SCOPED_TRACE(c.name);
    const at::Tensor weight = at::randn(c.weight), bias = at::randn({c.weight[0]}), x = at::randn(c.x);
    const auto module = model_of(c, weight, bias);
    const QuantizeReport report = quantize_(*module, "int8wo");
    ASSERT_EQ(report.layers.size(), 1U);
    EXPECT_EQ(report.layers[0].outcome, Outcome::kQuantized);
    EXPECT_EQ(report.layers[0].layer.kind, "convolution");
    EXPECT_EQ(report.layers[0].layer.n, c.weight[0]);
    EXPECT_EQ(report.layers[0].layer.k, weight.numel() / c.weight[0]);
    EXPECT_EQ(report.layers[0].bytes_after, weight.numel() + c.weight[0] * 4);
    EXPECT_TRUE(report.left_alone.empty());
    EXPECT_FALSE(module->tensors()->contains("conv.weight"));
    EXPECT_EQ(module->tensor("conv.weight:weight").sizes(), weight.sizes());
    const at::Tensor want = run_one(*model_of(c, restored(weight), bias), x);
    EXPECT_TRUE(at::allclose(run_one(*module, x), want, 1e-6, 1e-6));
  }
}

TEST(QuantizeConvolutions, ChannelsLastWeightsKeepTheirLayout) {
  const Convolution c = convolutions()[3];
  const at::Tensor weight = at::randn(c.weight).contiguous(at::MemoryFormat::ChannelsLast),
                   bias = at::zeros({5});
  const at::Tensor x = at::randn(c.x), before = run_one(*model_of(c, weight, bias), x);
  const auto module = model_of(c, weight, bias);
  quantize_(*module, "int8wo");
  const at::Tensor after = run_one(*module, x);
  EXPECT_EQ(module->tensor("conv.weight:weight").strides(), weight.strides());
  EXPECT_EQ(after.strides(), before.strides());
  EXPECT_TRUE(at::allclose(after, before, 0.1, 0.1));
}

TEST(QuantizeConvolutions, OtherSchemesLeaveThemAndSaySo) {
  const Convolution c = convolutions()[3];
  const auto module = model_of(c, at::randn(c.weight), at::randn({5}));
  for (const char* scheme : {"int8dq", "int4wo", "fp8wo", "fp8dq", "bf16wo"}) {
    EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { quantize_(*module, scheme); }),
                AllOf(HasSubstr("nothing to quantize"), HasSubstr("conv: a convolution of kernel 3 x 2"),
                      HasSubstr("--scheme int8wo"), HasSubstr("halftone ptq")));
  }
}

TEST(QuantizeConvolutions, ATransposedOneIsLeftAloneAndSaid) {
  const char text[] =
      R"(graph(%t: parameter "up.weight" f32[4, 6, 2, 2] grad, %w: parameter "conv.weight" f32[4, 6, 3, 3] grad, %x: user "x" f32[1, 6, 8, 8]) {
  %y: f32[1, 4, 6, 6] = aten::conv2d(%x, %w)  @ "conv" "Conv2d"
  %z: f32[1, 6, 12, 12] = aten::convolution(%y, %t, None, [2, 2], [0, 0], [1, 1], true, [0, 0], 1)  @ "up" "ConvTranspose2d"
  return %z
}
)";
  const auto module = module_from_text(
      text, {{"up.weight", at::randn({4, 6, 2, 2})}, {"conv.weight", at::randn({4, 6, 3, 3})}});
  const QuantizeReport report = quantize_(*module, "int8wo");
  ASSERT_EQ(report.layers.size(), 2U);
  EXPECT_EQ(report.layers[0].outcome, Outcome::kQuantized);
  EXPECT_EQ(report.layers[1].reason, "a transposed convolution");
  ASSERT_EQ(report.left_alone.size(), 1U);
  EXPECT_EQ(report.left_alone[0].kind, "convolution");
  EXPECT_EQ(report.left_alone[0].bytes, 4 * 6 * 2 * 2 * 4);
}

TEST(QuantizeConvolutions, QuantizedOnesAreKnownAgain) {
  const Convolution c = convolutions()[3];
  const auto module = model_of(c, at::randn(c.weight), at::randn({5}));
  quantize_(*module, "int8wo");
  const QuantizeReport again = quantize_(*module, "int8wo");
  ASSERT_EQ(again.layers.size(), 1U);
  EXPECT_EQ(again.layers[0].outcome, Outcome::kAlready);
  EXPECT_EQ(again.layers[0].layer.name, "conv");
  EXPECT_EQ(again.layers[0].layer.k, 3 * 3 * 2);
}

TEST(QuantizeConvolutions, TheOperatorChecksItsParts) {
  const auto handle = c10::Dispatcher::singleton().findSchemaOrThrow("halftone::restore_int8_weight", "");
  const auto restore = [&](const at::Tensor& weight, const at::Tensor& scale,
                           c10::ScalarType type = at::kFloat) {
    torch::jit::Stack stack{weight, scale, type};
    handle.callBoxed(stack);
  };
  const at::Tensor weight = at::ones({4, 2, 3}, at::kChar), scale = at::ones({4});
  EXPECT_NO_THROW(restore(weight, scale));
  EXPECT_THROW(restore(weight, at::ones({3})), Error);
  EXPECT_THROW(restore(weight, at::ones({4}, at::kDouble)), Error);
  EXPECT_THROW(restore(weight.to(at::kByte), scale), Error);
  EXPECT_THROW(restore(at::ones({4}, at::kChar), scale), Error);
  EXPECT_THROW(restore(weight, scale, at::kInt), Error);
}

}  // namespace
}  // namespace halftone
