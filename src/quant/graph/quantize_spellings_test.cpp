// Each way to write a linear, a convolution of kernel 1 or an embedding: text in, text out, and the same
// numbers.
#include <ATen/ops/allclose.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gmock/gmock.h>

#include "graph/test_support.h"
#include "halftone/quant/quantize.h"
#include "halftone/quant/weight_format.h"
#include "quant/graph/test_models.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kN = 6;
constexpr int64_t kK = 32;

/// What stands in a graph of one user input x, after a weight and a bias were given.
struct Spelling {
  const char* name;
  const char* body;        ///< nodes; the result is %y
  std::vector<int64_t> x;  ///< sizes of the user input
  std::vector<int64_t> weight;
  const char* expected;  ///< nodes afterwards
};

std::ostream& operator<<(std::ostream& stream, const Spelling& spelling) {
  return stream << spelling.name;
}

const char kLinearNode[] =
    R"(  %y: f32[4, 6] = halftone::int8_weight_only_linear(%x, %p_fc_weight_weight, %p_fc_weight_scale, %b))";
const char kNoBias[] =
    R"(  %y: f32[4, 6] = halftone::int8_weight_only_linear(%x, %p_fc_weight_weight, %p_fc_weight_scale))";

const std::vector<Spelling> kSpellings = {
    {"linear", "%y: f32[4, 6] = aten::linear(%x, %w, %b)", {4, kK}, {kN, kK}, kLinearNode},
    {"linear_without_bias", "%y: f32[4, 6] = aten::linear(%x, %w)", {4, kK}, {kN, kK}, kNoBias},
    {"linear_of_rank_3",
     "%y: f32[2, 4, 6] = aten::linear(%x, %w, %b)",
     {2, 4, kK},
     {kN, kK},
     "  %y: f32[2, 4, 6] = halftone::int8_weight_only_linear(%x, %p_fc_weight_weight, %p_fc_weight_scale, "
     "%b)"},
    {"addmm_of_t",
     "%t: f32[32, 6; 1, 32] = aten::t(%w)\n  %y: f32[4, 6] = aten::addmm(%b, %x, %t)",
     {4, kK},
     {kN, kK},
     kLinearNode},
    {"addmm_of_permute",
     "%t: f32[32, 6; 1, 32] = aten::permute(%w, [1, 0])\n  %y: f32[4, 6] = aten::addmm(%b, %x, %t)",
     {4, kK},
     {kN, kK},
     kLinearNode},
    {"addmm_as_stored",
     "%y: f32[4, 6] = aten::addmm(%b, %x, %w, beta=1, alpha=1.0)",
     {4, kK},
     {kK, kN},
     kLinearNode},
    {"addmm_of_a_whole_matrix",
     "%s: f32[4, 6] = aten::slice.Tensor(%x, 1, 0, 6)\n  %y: f32[4, 6] = aten::addmm(%s, %x, %w)",
     {4, kK},
     {kK, kN},
     "  %s: f32[4, 6] = aten::slice.Tensor(%x, 1, 0, 6)\n"
     "  %y_1: f32[4, 6] = halftone::int8_weight_only_linear(%x, %p_fc_weight_weight, %p_fc_weight_scale)\n"
     "  %y: f32[4, 6] = aten::add.Tensor(%y_1, %s)"},
    {"mm_of_t_copy",
     "%t: f32[32, 6] = aten::t_copy(%w)\n  %y: f32[4, 6] = aten::mm(%x, %t)",
     {4, kK},
     {kN, kK},
     kNoBias},
    {"mm_of_transpose",
     "%t: f32[32, 6; 1, 32] = aten::transpose.int(%w, -1, 0)\n  %y: f32[4, 6] = aten::mm(%x, %t)",
     {4, kK},
     {kN, kK},
     kNoBias},
    {"mm_of_detached_contiguous_copy",
     "%d: f32[6, 32] = aten::detach(%w)\n  %a: f32[6, 32] = aten::alias_copy(%d)\n  %t: f32[32, 6; 1, 32] = "
     "aten::t(%a)\n"
     "  %c: f32[32, 6] = aten::contiguous(%t)\n  %l: f32[32, 6] = aten::to.dtype(%c, dtype:f32)\n  %y: "
     "f32[4, 6] = aten::mm(%x, %l)",
     {4, kK},
     {kN, kK},
     kNoBias},
    {"matmul_of_rank_3",
     "%t: f32[32, 6; 1, 32] = aten::t(%w)\n  %y: f32[2, 4, 6] = aten::matmul(%x, %t)",
     {2, 4, kK},
     {kN, kK},
     "  %y: f32[2, 4, 6] = halftone::int8_weight_only_linear(%x, %p_fc_weight_weight, %p_fc_weight_scale)"},
    {"matmul_of_a_vector",
     "%y: f32[6] = aten::matmul(%x, %w)",
     {kK},
     {kK, kN},
     "  %y: f32[6] = halftone::int8_weight_only_linear(%x, %p_fc_weight_weight, %p_fc_weight_scale)"},
    {"bmm_of_expand",
     "%t: f32[32, 6; 1, 32] = aten::t(%w)\n  %e: f32[2, 32, 6; 0, 1, 32] = aten::expand(%t, [2, 32, 6])\n"
     "  %v: f32[2, 32, 6; 0, 1, 32] = aten::view(%e, [2, 32, 6])\n  %y: f32[2, 4, 6] = aten::bmm(%x, %v)",
     {2, 4, kK},
     {kN, kK},
     "  %y: f32[2, 4, 6] = halftone::int8_weight_only_linear(%x, %p_fc_weight_weight, %p_fc_weight_scale)"},
    {"conv1d",
     "%y: f32[2, 6, 5] = aten::conv1d(%x, %w, %b)",
     {2, kK, 5},
     {kN, kK, 1},
     "  %y_1: f32[2, 5, 32; 160, 1, 5] = aten::transpose.int(%x, -2, -1)\n"
     "  %y_2: f32[2, 5, 6] = halftone::int8_weight_only_linear(%y_1, %p_fc_weight_weight, "
     "%p_fc_weight_scale, %b)\n"
     "  %y_3: f32[2, 6, 5; 30, 1, 6] = aten::transpose.int(%y_2, -2, -1)\n"
     "  %y: f32[2, 6, 5] = aten::clone(%y_3, memory_format=format:contiguous)"},
    {"conv1d_without_batch",
     "%y: f32[6, 5] = aten::conv1d(%x, %w, %b)",
     {kK, 5},
     {kN, kK, 1},
     "  %y_1: f32[5, 32; 1, 5] = aten::transpose.int(%x, -2, -1)"},
    {"convolution",
     "%y: f32[2, 6, 5] = aten::convolution(%x, %w, None, [1], [0], [1], false, [0], 1)",
     {2, kK, 5},
     {kN, kK, 1},
     "halftone::int8_weight_only_linear(%y_1, %p_fc_weight_weight, %p_fc_weight_scale)"},
    {"conv1d_padded_by_name",
     "%y: f32[2, 6, 5] = aten::conv1d.padding(%x, %w, %b, [1], \"same\")",
     {2, kK, 5},
     {kN, kK, 1},
     "halftone::int8_weight_only_linear("},
};

std::string text_of(const Spelling& spelling) {
  const auto sizes = [](const std::vector<int64_t>& list) {
    return fmt::format("[{}]", fmt::join(list, ", "));
  };
  return fmt::format(
      "graph(%w: parameter \"fc.weight\" f32{} grad, %b: parameter \"fc.bias\" f32[6] grad, %x: user \"x\" "
      "f32{}) {{\n  {}\n  return %y\n}}\n",
      sizes(spelling.weight), sizes(spelling.x), spelling.body);
}

class Spellings : public ::testing::TestWithParam<Spelling> {};

TEST_P(Spellings, BecomeOneOperator) {
  const Spelling& spelling = GetParam();
  const auto module = module_from_text(
      text_of(spelling), {{"fc.weight", at::randn(spelling.weight)}, {"fc.bias", at::randn({kN})}});
  const QuantizeReport report = quantize_(*module, "int8wo");
  ASSERT_EQ(report.layers.size(), 1U);
  EXPECT_EQ(report.layers[0].layer.name, "fc");
  EXPECT_EQ(report.layers[0].layer.n, kN);
  EXPECT_EQ(report.layers[0].layer.k, kK);
  EXPECT_EQ(report.layers[0].outcome, LayerReport::Outcome::kQuantized);
  const std::string text = print_graph(module->graph());
  EXPECT_THAT(text, HasSubstr(spelling.expected));
  EXPECT_THAT(text, Not(HasSubstr("\"fc.weight\"")));
  EXPECT_FALSE(module->tensors()->contains("fc.weight"));
  EXPECT_EQ(print_graph(*parse_graph(text)), text);
}

TEST_P(Spellings, GiveWhatTheDequantizedWeightGives) {
  const Spelling& spelling = GetParam();
  at::Tensor weight = at::randn(spelling.weight);
  const TensorMap tensors = {{"fc.weight", weight}, {"fc.bias", at::randn({kN})}};
  const at::Tensor x = at::randn(spelling.x);
  // The oracle: the unchanged graph on the weight that the integers stand for.
  const bool stored_as_rows = spelling.weight[0] == kN;
  const at::Tensor matrix = stored_as_rows ? weight.reshape({kN, kK}) : weight.t();
  const QuantizedWeight quantized = quantize_weight(matrix, "int8wo", "fc");
  const at::Tensor restored = quantized.format->dequantize(quantized);
  TensorMap oracle_tensors = tensors;
  oracle_tensors["fc.weight"] = (stored_as_rows ? restored : restored.t()).reshape(spelling.weight);
  const at::Tensor expected = run_one(*module_from_text(text_of(spelling), oracle_tensors), x);
  const auto module = module_from_text(text_of(spelling), tensors);
  quantize_(*module, "int8wo");
  const at::Tensor got = run_one(*module, x);
  EXPECT_TRUE(at::allclose(got, expected, 1e-4, 1e-4)) << got << expected;
  EXPECT_EQ(got.strides(), expected.strides());
}

INSTANTIATE_TEST_SUITE_P(Graph, Spellings, ::testing::ValuesIn(kSpellings),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(QuantizeGraph, EmbeddingsBecomeLookupsWhenAsked) {
  const char text[] = R"(graph(%w: parameter "words.weight" f32[20, 32] grad, %i: user "i" i64[3]) {
  %y: f32[3, 32] = aten::embedding(%w, %i, 0)
  return %y
}
)";
  const at::Tensor weight = at::randn({20, 32});
  const at::Tensor indices = at::randint(20, {3}, at::kLong);
  for (const char* scheme : {"int8wo", "int4wo", "int8dq", "bf16wo"}) {
    const auto module = module_from_text(text, {{"words.weight", weight}});
    const QuantizeReport report = quantize_(*module, scheme, {.embeddings = true});
    EXPECT_EQ(report.layers.at(0).layer.kind, "embedding");
    EXPECT_THAT(print_graph(module->graph()), HasSubstr("_embedding(%i, %p_words_weight_weight"));
    const QuantizedWeight quantized = quantize_weight(weight, *report.layers[0].config, "words");
    const at::Tensor expected = quantized.format->dequantize(quantized).index({indices});
    EXPECT_TRUE(at::allclose(run_one(*module, indices), expected)) << scheme;
  }
}

}  // namespace
}  // namespace halftone
