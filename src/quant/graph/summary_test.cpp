#include "halftone/cli/summary.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "graph/test_support.h"
#include "halftone/quant/quantize.h"
#include "quant/graph/test_models.h"

namespace halftone {
namespace {

using ::testing::ElementsAre;

constexpr std::string_view kModel =
    R"(graph(%e: parameter "embed.weight" f32[10, 4], %w: parameter "fc.weight" f32[3, 4], %b: parameter "fc.bias" f32[3], %tied: parameter "head.weight" f32[10, 4], %count: buffer "count" i64[], %k: constant "k" f32[2], %ids: user "ids" i64[s0, 7], %flag: user "flag" bool) {
  %x: f32[s0, 7, 4] = aten::embedding(%e, %ids)  @ "embed" "Embedding"
  %h: f32[s0, 7, 3] = aten::linear(%x, %w, %b)  @ "fc" "Linear"
  %r: f32[s0, 7, 3] = aten::relu(%h)  @ "fc" "Linear"
  %r2: f32[s0, 7, 3] = aten::relu(%r)  @ "fc" "Linear"
  %t: f32[4, 10; 1, 4] = aten::t(%tied)  @ "head" "Linear"
  %o: f32[s0, 7, 10] = aten::matmul(%x, %t)  @ "head" "Linear"
  %n: i64[] = aten::add.Tensor(%count, 1)
  return %r2, %o, buffer_mutation "count" %n, None
}
)";

std::shared_ptr<GraphModule> make_model() {
  const at::Tensor shared = at::ones({10, 4});
  auto module = module_from_text(kModel, {{"embed.weight", shared},
                                          {"head.weight", shared},
                                          {"fc.weight", at::ones({3, 4})},
                                          {"fc.bias", at::ones({3})},
                                          {"count", at::zeros({}, at::kLong)},
                                          {"k", at::ones({2})}});
  module->ranges["s0"] = {2, 64};
  return module;
}

TEST(Summary, GroupsNodesByLayer) {
  const ModelSummary summary = summarize(*make_model());
  std::vector<std::string> rows;
  for (const LayerSummary& layer : summary.layers) {
    rows.push_back(fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}", layer.layer, layer.module_type, layer.ops,
                               layer.input_shape, layer.output_shape, layer.parameters, layer.parameter_bytes,
                               layer.nodes, layer.quantizable));
  }
  EXPECT_THAT(rows, ElementsAre("embed|Embedding|embedding|i64[s0, 7]|f32[s0, 7, 4]|40|160|1|embedding",
                                "fc|Linear|linear, relu ×2|f32[s0, 7, 4]|f32[s0, 7, 3]|15|60|3|linear",
                                "head|Linear|t, matmul|f32[s0, 7, 4]|f32[s0, 7, 10]|40|160|2|linear",
                                "||add||i64[]|0|0|1|"));
}

TEST(Summary, CountsTiedParametersOnce) {
  const ModelSummary summary = summarize(*make_model());
  EXPECT_EQ(summary.nodes, 7U);
  EXPECT_EQ(summary.parameters, 55);
  EXPECT_EQ(summary.parameter_bytes, 220);
  EXPECT_EQ(summary.tied_parameters, 1U);
  EXPECT_EQ(summary.buffers, 1);
  EXPECT_EQ(summary.buffer_bytes, 8);
  EXPECT_EQ(summary.constants, 2);
  EXPECT_EQ(summary.constant_bytes, 8);
}

TEST(Summary, DescribesInputsAndOutputs) {
  const ModelSummary summary = summarize(*make_model());
  ASSERT_EQ(summary.inputs.size(), 2U);
  EXPECT_EQ(summary.inputs[0].name, "ids");
  EXPECT_EQ(summary.inputs[0].dtype, "i64");
  EXPECT_EQ(summary.inputs[0].sizes, "[s0, 7]");
  ASSERT_EQ(summary.inputs[0].dynamic.size(), 1U);
  EXPECT_EQ(summary.inputs[0].dynamic[0].dimension, 0U);
  EXPECT_EQ(summary.inputs[0].dynamic[0].size, "s0");
  EXPECT_EQ(summary.inputs[0].dynamic[0].range, (SymbolRange{2, 64}));
  EXPECT_EQ(summary.inputs[1].dtype, "bool");
  EXPECT_EQ(summary.inputs[1].sizes, "");
  ASSERT_EQ(summary.outputs.size(), 3U);
  EXPECT_EQ(summary.outputs[1].path, "[1]");
  EXPECT_EQ(summary.outputs[1].dtype, "f32");
  EXPECT_EQ(summary.outputs[1].sizes, "[s0, 7, 10]");
  EXPECT_EQ(summary.outputs[2].dtype, "none");
}

TEST(Summary, IntegerWeightsAreNotQuantizable) {
  const auto module = module_from_text(
      R"(graph(%w: parameter "w" i8[3, 4], %c: constant "c" f32[3, 4], %x: user "x" i8[2, 4]) {
    %y: tensor = aten::linear(%x, %w)
    %z: tensor = aten::linear(%x, %c)
    return %y, %z
  })",
      {{"w", at::ones({3, 4}, at::kChar)}, {"c", at::ones({3, 4})}});
  EXPECT_EQ(summarize(*module).layers.at(0).quantizable, "");
}

TEST(Summary, FormatsRanges) {
  EXPECT_EQ(format_range({2, 64}), "2…64");
  EXPECT_EQ(format_range({0, std::numeric_limits<int64_t>::max()}), "0…");
}

TEST(Summary, CountsAWeightOnceThatIsThereTwice) {
  const char text[] =
      R"(graph(%w: parameter "head.weight" f32[20, 32] grad, %i: user "i" i64[3]) {
  %e: f32[3, 32] = aten::embedding(%w, %i)  @ "words" "Embedding"
  %y: f32[3, 20] = aten::linear(%e, %w)  @ "head" "Linear"
  return %y
}
)";
  const TensorMap tensors{{"head.weight", at::ones({20, 32})}};
  const auto stays = module_from_text(text, tensors);  // for the embedding
  quantize_(*stays, "int8wo");
  EXPECT_EQ(summarize(*stays).parameters, 20 * 32);
  const auto two = module_from_text(text, tensors);
  quantize_(*two, "int4wo", {.overrides = {{"words", "int8wo"}}});
  EXPECT_EQ(summarize(*two).parameters, 20 * 32);
}

TEST(Summary, CountsTheParametersThatQuantizedWeightsStandFor) {
  const ModelSummary before = summarize(*small_model());
  for (const Scheme& scheme : schemes()) {
    if (scheme.config.is_noquant()) continue;
    for (const bool embeddings : {false, true}) {
      const auto module = small_model();
      quantize_(*module, scheme.config, {.embeddings = embeddings});
      const ModelSummary after = summarize(*module);
      EXPECT_EQ(after.parameters, before.parameters) << scheme.names.front();
      EXPECT_LT(after.parameter_bytes, before.parameter_bytes) << scheme.names.front();
      for (size_t i = 0; i < before.layers.size(); ++i)
        EXPECT_EQ(after.layers.at(i).parameters, before.layers[i].parameters) << before.layers[i].layer;
    }
  }
}

}  // namespace
}  // namespace halftone
