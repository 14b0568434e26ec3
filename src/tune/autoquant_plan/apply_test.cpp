// Plans applied to graphs and to C++ modules: what becomes of the layers, what is refused, the same bytes.
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <torch/nn/modules/linear.h>

#include "archive/bytes/terminal_text.h"
#include "archive/bytes/text_file.h"
#include "archive/test_payloads.h"
#include "halftone/checkpoint/checkpoint.h"
#include "halftone/graph/graph_module.h"
#include "halftone/quant/quantized_tensor.h"
#include "quant/graph/quantize_graph.h"
#include "quant/graph/test_models.h"
#include "tune/autoquant_plan/test_plans.h"
#include "tune/test_support.h"

namespace halftone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Outcome = LayerReport::Outcome;

AutoquantPlan plan_of(const std::vector<std::pair<std::string, std::string>>& choices) {
  AutoquantPlan plan;
  for (const auto& [layer, scheme] : choices) {
    plan.layers.emplace_back().name = layer;
    plan.layers.back().choice = scheme;
  }
  return plan;
}

std::vector<std::string> quantized_layers(const QuantizeReport& report) {
  std::vector<std::string> lines;
  for (const LayerReport& layer : report.layers) {
    if (layer.outcome == Outcome::kQuantized)
      lines.push_back(layer.layer.name + " " + layer.config->describe());
  }
  return lines;
}

struct Tower : torch::nn::Module {
  Tower() : up(64, 96), down(torch::nn::LinearOptions(96, 64).bias(false)), head(64, 5) {
    register_module("up", up);
    register_module("down", down);
    register_module("head", head);
  }
  torch::nn::Linear up, down, head;
};

TEST(ApplyPlan, QuantizesAGraphAsThePlanSays) {
  at::manual_seed(1);
  const auto module = small_model();
  const QuantizeReport report =
      apply_plan(*module, plan_of({{"down", "int4wo"}, {"up", "int8dq-7bit"}, {"head", "fp32"}}));
  EXPECT_THAT(quantized_layers(report), ElementsAre("up Int8DynamicActivationInt8WeightConfig(weight_bits=7)",
                                                    "down Int4WeightOnlyConfig()"));
  EXPECT_LT(report.bytes_after, report.bytes_before);
  EXPECT_TRUE(module->tensors()->contains("head.weight"));
  EXPECT_TRUE(module->tensors()->contains("words.weight"));
  EXPECT_FALSE(module->tensors()->contains("up.weight"));
}

TEST(ApplyPlan, QuantizesAModuleAsThePlanSays) {
  at::manual_seed(1);
  Tower tower;
  const QuantizeReport report = apply_plan(tower, plan_of({{"up", "int4wo-int8act"}, {"down", "fp32"}}));
  EXPECT_THAT(quantized_layers(report), ElementsAre("up Int4WeightOnlyConfig(activations=int8)"));
  EXPECT_TRUE(is_quantized_tensor(tower.up->weight));
  EXPECT_FALSE(is_quantized_tensor(tower.down->weight));
  EXPECT_FALSE(is_quantized_tensor(tower.head->weight));
}

TEST(ApplyPlan, APlanOfFp32ChangesNothing) {
  at::manual_seed(1);
  const auto module = small_model();
  const std::string before = print_graph(module->graph());
  const QuantizeReport report = apply_plan(*module, plan_of({{"up", "fp32"}, {"down", "fp32"}}));
  EXPECT_EQ(print_graph(module->graph()), before);
  EXPECT_EQ(report.layers.size(), 4U);
  EXPECT_EQ(report.count(Outcome::kKept), 4U);
  EXPECT_EQ(report.bytes_before, report.bytes_after);
  EXPECT_EQ(report.bytes_before, bytes_of_tensors(*module->tensors()));
  Tower tower;
  EXPECT_EQ(apply_plan(tower, plan_of({{"up", "fp32"}})).count(Outcome::kKept), 3U);
  EXPECT_FALSE(is_quantized_tensor(tower.up->weight));
}

TEST(ApplyPlan, LayersBesideAnotherGetItsChoice) {
  at::manual_seed(1);
  const auto module = small_model();
  AutoquantPlan plan = plan_of({{"up", "int8wo"}});
  plan.layers.front().together = {"down"};
  EXPECT_THAT(quantized_layers(apply_plan(*module, plan)),
              ElementsAre("up Int8WeightOnlyConfig()", "down Int8WeightOnlyConfig()"));
}

struct RefusedPlan {
  AutoquantPlan plan;
  std::vector<std::string> parts;
};

std::vector<RefusedPlan> refused_plans() {
  AutoquantPlan other_sizes = plan_of({{"up", "int8wo"}});
  other_sizes.layers.front().n = 96;
  other_sizes.layers.front().k = 65;
  AutoquantPlan kept_sizes = plan_of({{"down", "int8wo"}, {"up", "fp32"}});
  kept_sizes.layers.back().n = 95;
  kept_sizes.layers.back().k = 64;
  AutoquantPlan beside = plan_of({{"up", "int8wo"}});
  beside.layers.front().together = {"dawn"};
  return {{plan_of({{"up", "int8wo"}, {"heat", "int8wo"}}),
           {"\"heat\"", "no such layer", "did you mean \"head\"?"}},
          {plan_of({{"up", "int8wo"}, {"gone", "fp32"}}), {"\"gone\"", "no such layer"}},
          {beside, {"\"dawn\"", "no such layer"}},
          {other_sizes, {"\"up\"", "96 × 65", "96 × 64"}},
          {kept_sizes, {"\"up\"", "95 × 64", "96 × 64"}},
          {plan_of({{"up", "int8wo"}, {"\x1b[2J\n", "int8wo"}}), {"\\x1b[2J\\n", "no such layer"}}};
}

TEST(ApplyPlan, RefusalsNameTheLayerAndLeaveTheGraphAsItWas) {
  at::manual_seed(1);
  const auto module = small_model();
  const std::string before = print_graph(module->graph());
  const TensorMap tensors = *module->tensors();
  for (const RefusedPlan& refused : refused_plans()) {
    const std::string message =
        message_of(ErrorCode::kInvalidArgument, [&] { apply_plan(*module, refused.plan); });
    for (const std::string& part : refused.parts) EXPECT_THAT(message, HasSubstr(part));
    EXPECT_EQ(print_graph(module->graph()), before);
    EXPECT_EQ(module->tensors()->size(), tensors.size());
  }
}

TEST(ApplyPlan, RefusalsLeaveTheModuleAsItWas) {
  at::manual_seed(1);
  Tower tower;
  const at::Tensor weight = tower.up->weight.detach().clone();
  for (const RefusedPlan& refused : refused_plans()) {
    const std::string message =
        message_of(ErrorCode::kInvalidArgument, [&] { apply_plan(tower, refused.plan); });
    for (const std::string& part : refused.parts) EXPECT_THAT(message, HasSubstr(part));
    EXPECT_FALSE(is_quantized_tensor(tower.up->weight));
    EXPECT_TRUE(at::equal(tower.up->weight, weight));
  }
}

TEST(ApplyPlan, ASchemeThatRefusesALayerIsAnError) {
  at::manual_seed(1);
  const auto module = module_from_text(
      "graph(%w: parameter \"odd.weight\" f32[8, 65794] grad, %v: parameter \"even.weight\" f32[65794, 64] "
      "grad, "
      "%x: "
      "user \"x\" f32[2, 64]) {\n"
      "  %h: f32[2, 65794] = aten::linear(%x, %v)  @ \"even\" \"Linear\"\n"
      "  %y: f32[2, 8] = aten::linear(%h, %w)  @ \"odd\" \"Linear\"\n  return %y\n}\n",
      {{"odd.weight", at::randn({8, 65794})}, {"even.weight", at::randn({65794, 64})}});
  const std::string before = print_graph(module->graph());
  expect_error(ErrorCode::kInvalidArgument, {"layer \"odd\"", "cannot become int8dq", "65793"}, [&] {
    apply_plan(*module, plan_of({{"even", "int8wo"}, {"odd", "int8dq"}}));
  });
  EXPECT_EQ(print_graph(module->graph()), before);
  apply_plan(*module, plan_of({{"even", "int4wo"}, {"odd", "int8wo"}}));
  EXPECT_NE(print_graph(module->graph()), before);
  expect_error(ErrorCode::kInvalidArgument, {"even", "already"}, [&] {
    apply_plan(*module, plan_of({{"even", "int8dq"}}));
  });
}

TEST(ApplyPlan, ALayerThatSharesItsWeightWithAKeptOneIsAnError) {
  at::manual_seed(1);
  Tower tower;
  torch::nn::Linear tied(64, 96);
  tied->weight = tower.up->weight;
  tower.register_module("tied", tied);
  tied->named_parameters(false)["weight"].set_data(tower.up->weight);
  auto plan = plan_of({{"up", "int8wo"}, {"down", "int8wo"}});
  const auto is_touched = [&] {
    return is_quantized_tensor(tower.up->weight) || is_quantized_tensor(tower.down->weight);
  };
  try {
    apply_plan(tower, plan);
    FAIL() << "no error was thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("layer \"up\": cannot become int8wo: its weight is shared"));
  }
  EXPECT_FALSE(is_touched());
}

TEST(ApplyPlan, TheSamePlanGivesTheSameBytes) {
  at::manual_seed(1);
  const TestFolder folder;
  const auto original = small_model();
  const AutoquantPlan plan = plan_of({{"up", "int4wo"}, {"down", "int8dq-7bit"}, {"head", "bf16wo"}});
  const AutoquantPlan read_again = AutoquantPlan::from_json(plan.to_json(), "p.json");
  std::vector<std::string> files;
  for (const AutoquantPlan& each : {plan, read_again}) {
    const auto module = original->clone();
    apply_plan(*module, each);
    files.push_back((folder.path / fmt::format("{}.ht", files.size())).string());
    save_checkpoint(*module, files.back());
  }
  EXPECT_EQ(read_text_file(files[0]), read_text_file(files[1]));
  std::vector<std::string> modules;
  Tower tower;
  for (const AutoquantPlan& each : {plan, read_again}) {
    Tower copy;
    copy.up->weight.set_data(tower.up->weight.detach().clone());
    copy.up->bias.set_data(tower.up->bias.detach().clone());
    copy.down->weight.set_data(tower.down->weight.detach().clone());
    copy.head->weight.set_data(tower.head->weight.detach().clone());
    copy.head->bias.set_data(tower.head->bias.detach().clone());
    apply_plan(copy, each);
    modules.push_back((folder.path / fmt::format("module{}.ht", modules.size())).string());
    save_module(copy, modules.back());
  }
  EXPECT_EQ(read_text_file(modules[0]), read_text_file(modules[1]));
}

TEST(ApplyPlan, HostileNamesAreFoundAsTheyAre) {
  at::manual_seed(1);
  for (const Payload& payload : load_payloads()) {
    const std::string name = utf8_text(payload.text);
    // Modules refuse names with dots and empty ones.
    if (name.empty() || name.find('.') != std::string::npos) continue;
    SCOPED_TRACE(payload.what);
    torch::nn::Module module;
    torch::nn::Linear layer(32, 32), other(32, 32);
    module.register_module(name, layer);
    module.register_module("other", other);
    const AutoquantPlan plan =
        AutoquantPlan::from_json(plan_of({{name, "int8wo"}, {"other", "fp32"}}).to_json(), "p.json");
    apply_plan(module, plan);
    EXPECT_TRUE(is_quantized_tensor(layer->weight));
    EXPECT_FALSE(is_quantized_tensor(other->weight));
  }
}

}  // namespace
}  // namespace halftone
