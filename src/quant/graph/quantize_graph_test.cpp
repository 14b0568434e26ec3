// quantize_ on whole graphs: options, tied weights, what is kept, layers that are quantized already, errors.
#include "quant/graph/quantize_graph.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/cosine_similarity.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <ctime>

#include "graph/test_support.h"
#include "halftone/quant/quantize.h"
#include "quant/graph/quantized_node.h"
#include "quant/graph/test_models.h"
#include "quant/weight/refusing_config_test_support.h"

namespace halftone {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Outcome = LayerReport::Outcome;

/// "name: config" or "name: kept, reason" for each layer.
std::vector<std::string> outcomes(const QuantizeReport& report) {
  std::vector<std::string> lines;
  for (const LayerReport& layer : report.layers) {
    const std::string what =
        layer.outcome == Outcome::kKept
            ? "kept, " + layer.reason
            : (layer.outcome == Outcome::kAlready ? "already " : "") + layer.config->type();
    lines.push_back(layer.layer.name + ": " + what);
  }
  return lines;
}

const LayerReport& layer_named(const QuantizeReport& report, std::string_view name) {
  for (const LayerReport& layer : report.layers) {
    if (layer.layer.name == name) return layer;
  }
  throw std::out_of_range(std::string(name));
}

double cosine(const at::Tensor& a, const at::Tensor& b) {
  return at::cosine_similarity(a.flatten().to(at::kDouble), b.flatten().to(at::kDouble), 0).item<double>();
}

TEST(QuantizeGraph, EverySchemeStaysNearTheModel) {
  at::manual_seed(0);  // torch's C++ generator begins anywhere, and four bits lose more of some small models
                       // than of others
  const at::Tensor indices = at::randint(20, {3}, at::kLong);
  const auto original = small_model();
  const at::Tensor expected = run_one(*original, indices);
  for (const Scheme& scheme : schemes()) {
    if (scheme.config.is_noquant()) continue;
    auto module = module_from_text(print_graph(original->graph()), *original->tensors());
    const QuantizeReport report = quantize_(*module, scheme.config);
    EXPECT_EQ(report.count(Outcome::kQuantized), 3U) << scheme.names.front();
    EXPECT_LT(report.bytes_after, report.bytes_before);
    EXPECT_GT(cosine(run_one(*module, indices), expected), 0.97) << scheme.names.front();
  }
}

/// n residual layers, x + linear(gelu(x)): 2^n paths lead from the first weight to the result. The head is
/// tied to the first weight.
std::shared_ptr<GraphModule> residual_model(int layers) {
  TensorMap tensors;
  std::string inputs, nodes;
  for (int i = 0; i < layers; ++i) {
    tensors.emplace(fmt::format("l{}.weight", i), at::randn({64, 64}).mul_(1.0 / 16));
    inputs += fmt::format("%w{0}: parameter \"l{0}.weight\" f32[64, 64] grad, ", i);
    nodes += fmt::format(
        "  %g{0}: f32[3, 64] = aten::gelu(%x{0})\n"
        "  %d{0}: f32[3, 64] = aten::linear(%g{0}, %w{0})  @ \"l{0}\" \"Linear\"\n"
        "  %x{1}: f32[3, 64] = aten::add.Tensor(%x{0}, %d{0})\n",
        i, i + 1);
  }
  tensors.emplace("head.weight", tensors.at("l0.weight"));
  const std::string text = fmt::format(
      "graph({}%h: parameter \"head.weight\" f32[64, 64] grad, %x0: user \"x\" f32[3, 64]) {{\n{}"
      "  %y: f32[3, 64] = aten::linear(%x{}, %h)  @ \"head\" \"Linear\"\n  return %y\n}}\n",
      inputs, nodes, layers);
  return module_from_text(text, tensors);
}

TEST(QuantizeGraph, TimeGrowsWithTheNodesNotWithThePaths) {
  at::manual_seed(0);
  const auto module = residual_model(200);
  const at::Tensor x = at::randn({3, 64});
  const at::Tensor expected = run_one(*module, x);
  const std::clock_t from = std::clock();
  const QuantizeReport report = quantize_(*module, "int8wo");
  EXPECT_LT(static_cast<double>(std::clock() - from) / CLOCKS_PER_SEC, 20.0);
  EXPECT_EQ(report.count(Outcome::kQuantized), 200U);  // the head is the first layer's weight
  EXPECT_FALSE(module->tensors()->contains("l0.weight"));
  EXPECT_FALSE(module->tensors()->contains("head.weight"));
  EXPECT_GT(cosine(run_one(*module, x), expected), 0.999);
}

TEST(QuantizeGraph, OptionsReachTheLayers) {
  const auto module = small_model();
  const QuantizeReport report =
      quantize_(*module, "int8wo", {.exclude = "head", .overrides = {{"down", "int4wo"}}});
  EXPECT_THAT(outcomes(report),
              ElementsAre(HasSubstr("words: kept, embeddings are"), "up: Int8WeightOnlyConfig",
                          "down: Int4WeightOnlyConfig", "head: kept, exclude \"head\" matches"));
  EXPECT_TRUE(module->tensors()->contains("head.weight"));
  EXPECT_FALSE(module->tensors()->contains("up.weight"));
  EXPECT_EQ(module->tensor("up.weight:weight").scalar_type(), at::kChar);
  EXPECT_EQ(module->tensor("down.weight:scale").sizes(), (std::vector<int64_t>{64, 3}));
}

TEST(QuantizeGraph, CountsBytes) {
  const auto module = small_model();
  const QuantizeReport report = quantize_(*module, "int8wo", {.include = "up"});
  const LayerReport& up = layer_named(report, "up");
  EXPECT_EQ(up.bytes_before, 96 * 64 * 4);
  EXPECT_EQ(up.bytes_after, 96 * 64 + 96 * 4);
  EXPECT_EQ(report.bytes_before, (20 * 64 + 96 * 64 + 96 + 64 * 96 + 5 * 64 + 5) * 4);
  EXPECT_EQ(report.bytes_after, report.bytes_before - up.bytes_before + up.bytes_after);
}

TEST(QuantizeGraph, ADryRunChangesNothing) {
  const auto module = small_model();
  const std::string before = print_graph(module->graph());
  const QuantizeReport report = quantize_(*module, "int8wo", {.dry_run = true});
  EXPECT_EQ(report.count(Outcome::kQuantized), 3U);
  EXPECT_LT(report.bytes_after, report.bytes_before);
  EXPECT_EQ(print_graph(module->graph()), before);
  EXPECT_TRUE(module->tensors()->contains("up.weight"));
}

TEST(QuantizeGraph, ReportsProgressLayerByLayer) {
  std::vector<std::string> steps;
  quantize_(*small_model(), "int8wo", {.progress = [&](int64_t done, int64_t total, std::string_view what) {
    steps.push_back(fmt::format("{}/{} {}", done, total, what));
  }});
  EXPECT_THAT(steps, ElementsAre("0/4 words", "1/4 up", "2/4 down", "3/4 head", "4/4 "));
}

TEST(QuantizeGraph, SessionsKeepTheModelTheyWereMadeWith) {
  const auto module = small_model();
  const at::Tensor indices = at::randint(20, {3}, at::kLong);
  Session session(module);
  const at::Tensor before = session.run({indices})[0].toTensor();
  quantize_(*module, "int4wo");
  EXPECT_TRUE(at::equal(session.run({indices})[0].toTensor(), before));
}

TEST(QuantizeGraph, MixedPrecisionBySeveralCalls) {
  const auto module = small_model();
  quantize_(*module, "int4wo", {.include = "up"});
  const QuantizeReport report = quantize_(*module, "int8wo", {.include = "down|head"});
  EXPECT_THAT(outcomes(report), ElementsAre(HasSubstr("words: kept"), "up: already Int4WeightOnlyConfig",
                                            "down: Int8WeightOnlyConfig", "head: Int8WeightOnlyConfig"));
  EXPECT_EQ(layer_named(report, "up").layer.k, 64);
  EXPECT_EQ(layer_named(report, "up").bytes_after, 96 * 64 / 2 + 96 * 2 * 4);
  const std::string message = message_of(ErrorCode::kInvalidArgument, [&] { quantize_(*module, "int8wo"); });
  EXPECT_THAT(message, AllOf(HasSubstr("up"), HasSubstr("already"), HasSubstr("Int4WeightOnlyConfig")));
}

TEST(QuantizeGraph, EverySchemeIsRecognisedAgain) {
  for (const Scheme& scheme : schemes()) {
    if (scheme.config.is_noquant()) continue;
    const auto module = small_model();
    quantize_(*module, scheme.config);
    const QuantizeReport again = quantize_(*module, scheme.config);
    EXPECT_EQ(again.count(Outcome::kAlready), 3U) << scheme.names.front();
    EXPECT_EQ(again.count(Outcome::kQuantized), 0U);
    EXPECT_EQ(again.bytes_before, again.bytes_after);
  }
}

TEST(QuantizeGraph, SearchedScalesAreRecognisedAgainAsFarAsTheGraphTells) {
  const QuantConfig search(Int4WeightOnlyConfig{.rounding = Int4Rounding::kSearch});
  const auto module = small_model();
  EXPECT_EQ(layer_named(quantize_(*module, search), "up").config, search);
  const QuantizeReport again = quantize_(*module, search);
  EXPECT_EQ(again.count(Outcome::kAlready), 3U);
  EXPECT_EQ(again.count(Outcome::kQuantized), 0U);
  const QuantConfig zeros(Int4WeightOnlyConfig{.symmetric = false, .rounding = Int4Rounding::kSearch});
  message_of(ErrorCode::kInvalidArgument, [&] { quantize_(*module, zeros); });
}

/// 16 evenly spaced values in each group of 32.
at::Tensor levels_of_four_bits(int64_t n, int64_t k) {
  const at::Tensor integers = at::randint(16, {n, k / 32, 32}).to(at::kFloat);
  return (integers * (at::rand({n, k / 32, 1}) * 0.02 + 0.001) + at::randn({n, k / 32, 1}) * 0.1)
      .reshape({n, k});
}

TEST(QuantizeGraph, KeepsWeightsThatHaveLevels) {
  const auto module = small_model();
  at::manual_seed(3);
  module->tensor("up.weight").copy_(levels_of_four_bits(96, 64));
  module->tensor("down.weight").copy_(levels_of_four_bits(64, 96));
  for (const char* name : {"words.weight", "head.weight"})  // what bfloat16 holds
    module->tensor(name).copy_(module->tensor(name).to(at::kBFloat16));
  const at::Tensor ids = at::randint(20, {3});
  const at::Tensor expected = run_one(*module, ids);
  const QuantizeReport report =
      quantize_keeping_levels(*module, Int4Activations::kFloat, Bf16WeightOnlyConfig{}, {.embeddings = true});
  EXPECT_THAT(outcomes(report), ElementsAre("words: Bf16WeightOnlyConfig", "up: Int4WeightOnlyConfig",
                                            "down: Int4WeightOnlyConfig", "head: Bf16WeightOnlyConfig"));
  EXPECT_TRUE(at::allclose(run_one(*module, ids), expected, 1e-4, 1e-4));

  const auto rounded = small_model();  // the same weights in 4 bits once more: everything changes
  at::manual_seed(3);
  rounded->tensor("up.weight").copy_(levels_of_four_bits(96, 64));
  rounded->tensor("down.weight").copy_(levels_of_four_bits(64, 96));
  for (const char* name : {"words.weight", "head.weight"})
    rounded->tensor(name).copy_(rounded->tensor(name).to(at::kBFloat16));
  quantize_(*rounded, Int4WeightOnlyConfig{}, {.exclude = "head"});
  EXPECT_FALSE(at::allclose(run_one(*rounded, ids), expected, 1e-2, 1e-2));
}

TEST(QuantizeGraph, OptionsReachLayersWithLevels) {
  const auto module = small_model();
  module->tensor("up.weight").copy_(levels_of_four_bits(96, 64));
  const QuantizeReport report =
      quantize_keeping_levels(*module, Int4Activations::kInt8, Int8WeightOnlyConfig{}, {.exclude = "up"});
  EXPECT_EQ(layer_named(report, "up").outcome, Outcome::kKept);
  EXPECT_EQ(layer_named(report, "down").config, QuantConfig(Int8WeightOnlyConfig{}));
}

TEST(QuantizeGraph, TiedLinearsShareOneQuantizedWeight) {
  const char text[] =
      R"(graph(%a: parameter "first.weight" f32[8, 8] grad, %b: parameter "second.weight" f32[8, 8] grad, %x: user "x" f32[2, 8]) {
  %h: f32[2, 8] = aten::linear(%x, %a)  @ "first" "Linear"
  %y: f32[2, 8] = aten::linear(%h, %b)  @ "second" "Linear"
  return %y
}
)";
  const at::Tensor shared = at::randn({8, 8});
  const auto module = module_from_text(text, {{"first.weight", shared}, {"second.weight", shared}});
  const QuantizeReport report = quantize_(*module, "int8wo");
  EXPECT_EQ(report.layers.size(), 1U);
  EXPECT_EQ(module->tensors()->size(), 2U);  // one weight, one scale; both names of the old one are gone
  EXPECT_EQ(module->graph().inputs().size(), 3U);
  EXPECT_EQ(report.bytes_before, 8 * 8 * 4);
}

const char kTied[] =
    R"(graph(%w: parameter "head.weight" f32[20, 32] grad, %i: user "i" i64[3]) {
  %e: f32[3, 32] = aten::embedding(%w, %i)  @ "words" "Embedding"
  %y: f32[3, 20] = aten::linear(%e, %w)  @ "head" "Linear"
  return %y
}
)";

TEST(QuantizeGraph, AWeightStaysForTheEmbeddingTiedToIt) {
  const auto module = module_from_text(kTied, {{"head.weight", at::randn({20, 32})}});
  const QuantizeReport report = quantize_(*module, "int8wo");
  EXPECT_THAT(outcomes(report),
              ElementsAre(HasSubstr("words: kept, embeddings are"), "head: Int8WeightOnlyConfig"));
  EXPECT_EQ(layer_named(report, "head").reason, "the weight stays too, for aten::embedding");
  EXPECT_TRUE(module->tensors()->contains("head.weight"));
}

TEST(QuantizeGraph, ATiedEmbeddingSharesTheQuantizedWeight) {
  const auto module = module_from_text(kTied, {{"head.weight", at::randn({20, 32})}});
  quantize_(*module, "int8dq", {.embeddings = true});
  EXPECT_EQ(module->tensors()->size(), 2U);
  EXPECT_THAT(print_graph(module->graph()),
              AllOf(HasSubstr("halftone::int8_embedding(%i, %p_head_weight_weight, %p_head_weight_scale"),
                    HasSubstr("halftone::int8_linear(%e, %p_head_weight_weight, %p_head_weight_scale")));
}

TEST(QuantizeGraph, OneWeightInTwoFormatsGetsTwoNames) {
  const auto module = module_from_text(kTied, {{"head.weight", at::randn({20, 32})}});
  const QuantizeReport report = quantize_(*module, "int4wo", {.overrides = {{"words", "int8wo"}}});
  EXPECT_EQ(report.count(Outcome::kQuantized), 2U);
  EXPECT_EQ(module->tensor("head.weight:weight").scalar_type(), at::kChar);
  EXPECT_EQ(module->tensor("head.weight:2:weight").scalar_type(), at::kByte);
  EXPECT_EQ(layer_of_tensor("head.weight:2:weight"), "head");
}

TEST(QuantizeGraph, RowsOfAWeightAreLayersOfTheirOwn) {
  const char text[] =
      R"(graph(%w: parameter "in_proj_weight" f32[12, 8] grad, %x: user "x" f32[2, 8]) {
  %l: list = aten::split_with_sizes(%w, [4, 8])
  %q: f32[4, 8], %kv: f32[8, 8] = builtin::unpack(%l)
  %a: f32[2, 4] = aten::linear(%x, %q)
  %b: f32[2, 8] = aten::linear(%x, %kv)
  %y: f32[2, 12] = aten::cat([%a, %b], 1)
  return %y
}
)";
  const TensorMap tensors = {{"in_proj_weight", at::randn({12, 8})}};
  const at::Tensor x = at::randn({2, 8});
  const at::Tensor expected = run_one(*module_from_text(text, tensors), x);
  const auto module = module_from_text(text, tensors);
  const QuantizeReport report = quantize_(*module, "int8wo");
  EXPECT_THAT(outcomes(report), ElementsAre("in_proj_weight[0:4]: Int8WeightOnlyConfig",
                                            "in_proj_weight[4:12]: Int8WeightOnlyConfig"));
  EXPECT_FALSE(module->tensors()->contains("in_proj_weight"));
  EXPECT_TRUE(module->tensors()->contains("in_proj_weight[4:12]:scale"));
  EXPECT_GT(cosine(run_one(*module, x), expected), 0.999);
}

TEST(QuantizeGraph, CastWeightsAreQuantizedAsTheyAreUsed) {
  const char text[] =
      R"(graph(%w: parameter "fc.weight" f32[6, 32] grad, %x: user "x" bf16[2, 32]) {
  %c: bf16[6, 32] = aten::_to_copy(%w, dtype=dtype:bf16)
  %y: bf16[2, 6] = aten::linear(%x, %c)
  return %y
}
)";
  const at::Tensor weight = at::randn({6, 32});
  const auto module = module_from_text(text, {{"fc.weight", weight}});
  quantize_(*module, "int8wo");
  const QuantizedWeight expected = quantize_weight(weight.to(at::kBFloat16), "int8wo", "fc");
  EXPECT_TRUE(at::equal(module->tensor("fc.weight:weight"), expected.part("weight")));
  EXPECT_EQ(run_one(*module, at::randn({2, 32}).to(at::kBFloat16)).scalar_type(), at::kBFloat16);
}

struct Kept {
  const char* body;
  const char* reason;
};

TEST(QuantizeGraph, SaysWhyALayerIsKept) {
  const Kept cases[] = {
      {"%y: f32[4, 6] = aten::addmm(%b, %x, %w, beta=2)", "addmm with beta or alpha other than 1"},
      {"%m: f32[8, 6] = aten::mul.Tensor(%w, %w)\n  %y: f32[4, 6] = aten::mm(%x, %m)",
       "its weight is computed by aten::mul.Tensor"},
      {"%m: f32[8, 6] = aten::mul_.Scalar(%w, 2)\n  %y: f32[4, 6] = aten::mm(%x, %w)",
       "the graph writes to its weight"},
      {"%y: f32[4, 6] = aten::einsum(\"ij,jk->ik\", [%x, %w])", "einsum is not looked into"},
  };
  for (const Kept& one : cases) {
    const auto module =
        module_from_text(fmt::format("graph(%w: parameter \"w\" f32[8, 6] grad, %b: buffer \"b\" f32[6], %x: "
                                     "user \"x\" f32[4, 8]) {{\n  {}\n  return %y\n}}\n",
                                     one.body),
                         {{"w", at::randn({8, 6})}, {"b", at::randn({6})}});
    const std::string before = print_graph(module->graph());
    EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { quantize_(*module, "int8wo"); }),
                AllOf(HasSubstr("nothing to quantize"), HasSubstr(std::string("w: ") + one.reason)));
    EXPECT_EQ(print_graph(module->graph()), before);
  }
}

TEST(QuantizeGraph, ConvolutionsThatAreNoLinearsAreKept) {
  const Kept cases[] = {
      {"%y: tensor = aten::conv1d(%x, %w, None, [2])", "a convolution with a stride"},
      {"%y: tensor = aten::conv1d(%x, %w, None, [1], [1])", "a convolution with padding"},
      {"%y: tensor = aten::conv1d(%x, %w, None, [1], [0], [1], 2)", "a convolution with groups"},
      {"%y: tensor = aten::conv1d(%x, %k)", "a convolution of kernel 3"},
  };
  for (const Kept& one : cases) {
    const auto module =
        module_from_text(fmt::format("graph(%w: parameter \"w\" f32[6, 8, 1] grad, %k: parameter \"k\" "
                                     "f32[6, 8, 3] grad, %x: user \"x\" f32[1, 8, 9]) {{\n  {}\n  return "
                                     "%y\n}}\n",
                                     one.body),
                         {{"w", at::randn({6, 8, 1})}, {"k", at::randn({6, 8, 3})}});
    EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { quantize_(*module, "int8dq"); }),
                HasSubstr(one.reason));
  }
}

TEST(QuantizeGraph, LinearsInSubgraphsAreKeptAndTheirWeightStays) {
  const char text[] =
      R"(graph(%w: parameter "fc.weight" f32[8, 8] grad, %p: user "p" bool[], %x: user "x" f32[2, 8]) {
  %y: f32[2, 8] = builtin::cond(%p, graph(%a: user "a" f32[2, 8], %u: user "u" f32[8, 8]) {
    %t: f32[8, 8; 1, 8] = aten::t(%u)
    %z: f32[2, 8] = aten::mm(%a, %t)
    return %z
  }, graph(%a: user "a" f32[2, 8], %u: user "u" f32[8, 8]) {
    return %a
  }, [%x, %w])
  return %y
}
)";
  const auto module = module_from_text(text, {{"fc.weight", at::randn({8, 8})}});
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { quantize_(*module, "int8wo"); }),
              HasSubstr("fc: it stands inside a graph of builtin::cond"));
}

TEST(QuantizeGraph, AttentionIsNoLayer) {
  const auto module = module_from_text(
      "graph(%x: user \"x\" f32[2, 8], %z: user \"z\" f32[8, 4]) {\n  %y: f32[2, 4] = aten::mm(%x, %z)\n  "
      "return %y\n}\n");
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { quantize_(*module, "int8wo"); }),
              HasSubstr("nothing to quantize: the model has no linear layers"));
}

TEST(QuantizeGraph, ErrorsNameTheLayerAndLeaveTheModuleAsItWas) {
  const auto module = small_model();
  at::Tensor bad = module->tensor("head.weight").clone();
  bad[2][3] = std::numeric_limits<float>::quiet_NaN();
  module->set_tensor("head.weight", bad);
  const std::string before = print_graph(module->graph());
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { quantize_(*module, "int8wo"); }),
              AllOf(HasSubstr("test model: head"), HasSubstr("nan")));
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { quantize_(*module, refusing_config()); }),
              AllOf(HasSubstr("3 layers cannot"), HasSubstr("up: no"), HasSubstr("head: no")));
  EXPECT_THAT(
      message_of(ErrorCode::kInvalidArgument, [&] { quantize_(*module, "int8wo", {.include = "nope"}); }),
      HasSubstr("include pattern \"nope\""));
  EXPECT_EQ(print_graph(module->graph()), before);
  EXPECT_EQ(module->tensors()->size(), 6U);
}

TEST(QuantizeGraph, NodesKeepTheirSource) {
  const auto module = small_model();
  quantize_(*module, "int8dq");
  EXPECT_THAT(print_graph(module->graph()),
              AllOf(HasSubstr("  @ \"up\" \"Linear\""), HasSubstr("  @ \"head\" \"Linear\"")));
  for (const auto& node : module->graph().nodes()) {
    if (const auto quantized = try_quantized_node(*node)) {
      EXPECT_EQ(quantized->layer.name, node->source().layer);
    }
  }
}

TEST(QuantizeGraph, TheSameCallGivesTheSameBytes) {
  const auto original = small_model();
  const auto quantized = [&] {
    auto module = module_from_text(print_graph(original->graph()), *original->tensors());
    quantize_(*module, "int4wo");
    return module;
  };
  const auto a = quantized();
  const auto b = quantized();
  EXPECT_EQ(print_graph(a->graph()), print_graph(b->graph()));
  for (const auto& [name, tensor] : *a->tensors()) EXPECT_TRUE(at::equal(tensor, b->tensor(name))) << name;
}

}  // namespace
}  // namespace halftone
