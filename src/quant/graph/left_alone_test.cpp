// The report of quantize_ on weights that its scheme does not change, in graphs.
#include <ATen/ops/randn.h>
#include <gmock/gmock.h>

#include "graph/test_support.h"
#include "halftone/quant/quantize.h"
#include "quant/graph/test_models.h"

namespace halftone {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// A recurrent layer with nearly all bytes, a convolution, a table that is added, and one linear.
std::shared_ptr<GraphModule> mixed_model() {
  const char text[] =
      R"(graph(%wi: parameter "r.weight_ih" f32[64, 16] grad, %wh: parameter "r.weight_hh" f32[64, 16] grad, %bi: parameter "r.bias_ih" f32[64] grad, %bh: parameter "r.bias_hh" f32[64] grad, %c: parameter "conv.weight" f32[4, 1, 3, 3] grad, %t: parameter "table" f32[5, 16] grad, %w: parameter "fc.weight" f32[4, 16] grad, %x: user "x" f32[5, 2, 16], %h0: user "h0" f32[1, 2, 16], %c0: user "c0" f32[1, 2, 16], %image: user "image" f32[1, 1, 8, 8]) {
  %h: f32[5, 2, 16], %hn: f32[1, 2, 16], %cn: f32[1, 2, 16] = aten::lstm.input(%x, [%h0, %c0], [%wi, %wh, %bi, %bh], true, 1, 0.0, false, false, false)  @ "r" "LSTM"
  %u: f32[5, 1, 16] = aten::unsqueeze(%t, 1)
  %s: f32[5, 2, 16] = aten::add.Tensor(%h, %u)
  %y: f32[5, 2, 4] = aten::linear(%s, %w)  @ "fc" "Linear"
  %z: f32[1, 4, 6, 6] = aten::conv2d(%image, %c)  @ "conv" "Conv2d"
  return %y, %z
}
)";
  return module_from_text(text, {{"r.weight_ih", at::randn({64, 16})},
                                 {"r.weight_hh", at::randn({64, 16})},
                                 {"r.bias_ih", at::randn({64})},
                                 {"r.bias_hh", at::randn({64})},
                                 {"conv.weight", at::randn({4, 1, 3, 3})},
                                 {"table", at::randn({5, 16})},
                                 {"fc.weight", at::randn({4, 16})}});
}

const LeftAlone* kind_of(const QuantizeReport& report, std::string_view kind) {
  for (const LeftAlone& one : report.left_alone) {
    if (one.kind == kind) return &one;
  }
  return nullptr;
}

TEST(LeftAlone, ListsWhatTheSchemeDoesNotTouch) {
  const QuantizeReport report = quantize_(*mixed_model(), "fp8wo");
  const int64_t total = 4 * (2 * 64 * 16 + 2 * 64 + 4 * 9 + 5 * 16 + 4 * 16);
  EXPECT_EQ(report.bytes_before, total);
  ASSERT_EQ(report.left_alone.size(), 3U);
  EXPECT_EQ(report.left_alone[0].kind, "LSTM");  // most bytes first
  EXPECT_EQ(report.left_alone[0].count, 1U);     // four tensors, one layer
  EXPECT_EQ(report.left_alone[0].bytes, 4 * (2 * 64 * 16 + 2 * 64));
  EXPECT_DOUBLE_EQ(report.left_alone[0].share, static_cast<double>(report.left_alone[0].bytes) / total);
  EXPECT_EQ(kind_of(report, "convolution")->bytes, 4 * 4 * 9);
  EXPECT_THAT(kind_of(report, "convolution")->help, HasSubstr("halftone ptq"));
  EXPECT_EQ(kind_of(report, "other weight")->bytes, 4 * 5 * 16);
  EXPECT_EQ(report.warnings().size(), 1U);
}

TEST(LeftAlone, WhatTheCallerKeepsIsNotAmongIt) {
  const auto model = small_model();
  QuantizeReport report = quantize_(*model, "int8wo", {.exclude = "head", .dry_run = true});
  ASSERT_EQ(report.left_alone.size(), 1U);
  EXPECT_EQ(report.left_alone[0].kind, "embedding");
  EXPECT_EQ(report.left_alone[0].bytes, 20 * 64 * 4);
  EXPECT_THAT(report.left_alone[0].help, HasSubstr("--embeddings"));
  report = quantize_(*model, "int8wo", {.include = "up", .dry_run = true});
  EXPECT_TRUE(report.left_alone.empty());
  report = quantize_(*model, "int8wo", {.embeddings = true});
  EXPECT_TRUE(report.left_alone.empty());
}

TEST(LeftAlone, NothingToQuantizeSaysWhatThereIs) {
  const char text[] =
      R"(graph(%c: parameter "conv.weight" f32[4, 1, 3, 3] grad, %image: user "image" f32[1, 1, 8, 8]) {
  %z: f32[1, 4, 6, 6] = aten::conv2d(%image, %c)  @ "conv" "Conv2d"
  return %z
}
)";
  const auto model = module_from_text(text, {{"conv.weight", at::randn({4, 1, 3, 3})}});
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { quantize_(*model, "fp8wo"); }),
              AllOf(HasSubstr("nothing to quantize"),
                    HasSubstr("1 convolution (144 B, 100.0 % of the bytes)"), HasSubstr("halftone ptq")));
}

/// `names`: of the embedding's and of the linear's weight, which are one.
std::shared_ptr<GraphModule> tied_model(bool two_names) {
  const std::string parameters = two_names
                                     ? "%e: parameter \"words.weight\" f32[200, 32] grad, %w: parameter "
                                       "\"head.weight\" f32[200, 32] grad"
                                     : "%w: parameter \"head.weight\" f32[200, 32] grad";
  const at::Tensor weight = at::randn({200, 32});
  TensorMap tensors{{"head.weight", weight}};
  if (two_names) tensors.emplace("words.weight", weight);
  return module_from_text(fmt::format(R"(graph({}, %i: user "i" i64[3]) {{
  %x: f32[3, 32] = aten::embedding(%{}, %i)  @ "words" "Embedding"
  %y: f32[3, 200] = aten::linear(%x, %w)  @ "head" "Linear"
  return %y
}}
)",
                                      parameters, two_names ? "e" : "w"),
                          tensors);
}

TEST(LeftAlone, ATiedWeightMakesTheModelLarger) {
  for (const bool two_names : {false, true}) {
    const QuantizeReport report = quantize_(*tied_model(two_names), "int8wo");
    EXPECT_EQ(report.bytes_after, 200 * 32 * 4 + 200 * 32 + 200 * 4);
    ASSERT_EQ(report.left_alone.size(), 1U);
    EXPECT_EQ(report.left_alone[0].kind, "embedding");
    EXPECT_DOUBLE_EQ(report.left_alone[0].share, 1.0);
    ASSERT_FALSE(report.warnings().empty());
    EXPECT_THAT(report.warnings()[0], AllOf(HasSubstr("1.28 times larger"), HasSubstr("--embeddings")));
  }
}

TEST(LeftAlone, ATiedWeightIsCountedOnce) {
  for (const bool two_names : {false, true}) {
    const auto model = tied_model(two_names);
    const QuantizeReport report = quantize_(*model, "int8dq", {.embeddings = true});
    EXPECT_EQ(report.bytes_before, 200 * 32 * 4);
    EXPECT_EQ(report.bytes_after, 200 * 32 + 200 * 4);
    EXPECT_EQ(model->tensors()->size(), 2U);
    ASSERT_EQ(report.layers.size(), 2U);
    EXPECT_EQ(report.layers[1].tied_to, report.layers[0].layer.name);
    EXPECT_FALSE(report.layers[1].own_tensors);
    EXPECT_THAT(report.to_text(), HasSubstr("Quantized weights: 25.6 kB -> 7.2 kB (3.56 times smaller)"));
    EXPECT_TRUE(report.warnings().empty());
  }
}

}  // namespace
}  // namespace halftone
