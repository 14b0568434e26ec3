// epilogue_fusion, fuse_int_mm_with_mul and mixed_mm: what is switched off becomes steps of its own, and the
// numbers stay.
#include <ATen/core/dispatch/Dispatcher.h>
#include <fmt/format.h>

#include "compat/rewrites.h"
#include "compat/test_models.h"
#include "halftone/quant/weight_format.h"

namespace halftone {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

BaselineOptions switched_off(const char* option) {
  BaselineOptions options;
  set_baseline_option(options, std::string(option) + "=off");
  return options;
}

TEST(BaselineFusion, EpiloguesBecomeStepsOfTheirOwn) {
  const auto module = block_model();
  const auto inputs = block_inputs();
  const auto fused = baseline_compile(module, {});
  const auto apart = baseline_compile(module, switched_off("epilogue_fusion"));
  EXPECT_THAT(targets_of(fused->report(inputs)),
              ElementsAre("halftone::fused_linear", "halftone::fused_linear", "halftone::norm",
                          "halftone::fused_linear"));
  EXPECT_THAT(targets_of(apart->report(inputs)),
              testing::UnorderedElementsAre("halftone::fused_linear", "halftone::fused_linear",
                                            "halftone::fused_linear", "aten::gelu", "aten::add.Tensor",
                                            "halftone::norm"));
  expect_close(apart->run(inputs), fused->run(inputs), 1e-5);
}

TEST(BaselineFusion, QuantizedRowsAreAnEpilogueToo) {
  const auto module = block_model();
  quantize_(*module, "int8dq");
  const auto writes_rows = [](const Graph& graph) {
    return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const auto& node) {
      return node->is("halftone::fused_linear") && !node->output(1)->users().empty();
    });
  };
  const auto inputs = block_inputs();
  const auto fused = baseline_compile(module, {});
  const auto apart = baseline_compile(module, switched_off("epilogue_fusion"));
  EXPECT_TRUE(writes_rows(fused->compiled_for(inputs)->graph()));
  EXPECT_FALSE(writes_rows(apart->compiled_for(inputs)->graph()));
  expect_close(apart->run(inputs), fused->run(inputs), 1e-4);
}

TEST(BaselineFusion, IntProductsAreScaledApart) {
  std::vector<QuantConfig> configs;
  for (const bool symmetric : {false, true})
    for (const int bits : {7, 8}) configs.push_back(Int8DynamicActivationInt8WeightConfig{symmetric, bits});
  for (const QuantConfig& config : configs) {
    SCOPED_TRACE(config.describe());
    const auto module = block_model();
    quantize_(*module, config);
    const std::string before = print_graph(module->graph());
    const auto fused = baseline_compile(module, {});
    const auto apart = baseline_compile(module, switched_off("fuse_int_mm_with_mul"));
    EXPECT_EQ(print_graph(module->graph()), before) << "the caller's graph is left alone";
    for (const int64_t rows : {1, 5, 64}) {
      const auto inputs = block_inputs(rows);
      const PlanReport report = apart->report(inputs);
      EXPECT_EQ(report.interpreted, "");
      EXPECT_EQ(count_steps(report, "halftone::int_mm"), 3u);
      EXPECT_EQ(count_steps(report, "halftone::fused_linear"), 0u);
      EXPECT_EQ(count_steps(report, "halftone::quantize_rows"), 2u) << "x is quantized once for two linears";
      EXPECT_GE(count_steps(report, "aten::mul.Tensor"), 6u);
      expect_close(apart->run(inputs), fused->run(inputs), 1e-5);
    }
    EXPECT_THAT(apart->notes(), Contains(HasSubstr("3 int8 linears")));
  }
}

TEST(BaselineFusion, IntProductsKeepTheTypeOfHalfPrecisionModels) {
  const char text[] =
      R"(graph(%w: parameter "fc.weight" bf16[32, 64], %b: parameter "fc.bias" bf16[32], %x: user "x" bf16[3, 64]) {
  %y: bf16[3, 32] = aten::linear(%x, %w, %b)  @ "fc" "Linear"
  return %y
}
)";
  at::manual_seed(3);
  for (const char* scheme : {"int8dq", "int8wo"}) {
    const auto module = module_from_text(text, {{"fc.weight", at::randn({32, 64}).to(at::kBFloat16)},
                                                {"fc.bias", at::randn({32}).to(at::kBFloat16)}});
    quantize_(*module, scheme);
    const std::vector<c10::IValue> inputs = {at::randn({3, 64}).to(at::kBFloat16)};
    BaselineOptions options = switched_off("fuse_int_mm_with_mul");
    options.mixed_mm = false;
    const auto result = baseline_compile(module, options)->run(inputs).at(0).toTensor();
    EXPECT_EQ(result.scalar_type(), at::kBFloat16);
    const auto expected = baseline_compile(module, {})->run(inputs).at(0).toTensor();
    EXPECT_TRUE(at::allclose(result, expected, 2e-2, 2e-2)) << scheme;
  }
}

TEST(IntMm, IsExact) {
  baseline::register_int_mm();
  at::manual_seed(4);
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("halftone::int_mm", "");
  for (const int64_t k : {1, 514, 515, 5000}) {
    // The largest numbers there are, so that sums do not fit a float.
    const at::Tensor q = at::full({2, 3, k}, 255, at::kByte), zero_point = at::zeros({6}, at::kInt);
    at::Tensor weight = at::randint(-128, 128, {7, k}, at::kChar);
    weight.select(0, 0).fill_(-128);
    zero_point.fill_(1);
    std::vector<c10::IValue> stack = {q, zero_point, weight};
    op.callBoxed(stack);
    const at::Tensor result = stack.at(0).toTensor();
    EXPECT_EQ(result.scalar_type(), at::kInt);
    const at::Tensor expected = at::matmul(q.to(at::kLong) - 1, weight.to(at::kLong).t());
    EXPECT_TRUE(at::equal(result.to(at::kLong), expected)) << k;
  }
  expect_error(ErrorCode::kInvalidArgument, {"do not fit each other"}, [&] {
    std::vector<c10::IValue> stack = {at::zeros({2, 3}, at::kByte), at::zeros({2}, at::kInt),
                                      at::zeros({2, 4}, at::kChar)};
    op.callBoxed(stack);
  });
}

TEST(BaselineFusion, RowsOfBothKindsHaveTheirTypeOutsideOfKernels) {
  // A compiled model hands rows to ATen and to callers as the operator says: u8, or s8 where symmetric.
  for (const bool symmetric : {false, true}) {
    const auto module = module_from_text(fmt::format(R"(graph(%x: user "x" f32[3, 8]) {{
  %q: {}[3, 8], %s: f32[3], %z: i32[3] = halftone::quantize_rows(%x, symmetric={})
  return %q
}}
)",
                                                     symmetric ? "i8" : "u8", symmetric));
    const std::vector<c10::IValue> inputs = {at::randn({3, 8})};
    expect_close(compile(module)->run(inputs), Session(module).run(inputs), 0);
  }
}

/// The block with the weights that a scheme keeps, in float32.
std::shared_ptr<GraphModule> block_with_restored_weights(const QuantConfig& config) {
  const auto module = block_model();
  for (const char* name : {"up.weight", "down.weight", "side.weight"}) {
    const QuantizedWeight weight = quantize_weight(module->tensor(name), config, name);
    module->put_tensor(name, weight.format->dequantize(weight));
  }
  return module;
}

TEST(BaselineFusion, WithoutMixedProductsWeightsAreInFloat32) {
  for (const char* scheme : {"int8wo", "int4wo", "fp8wo", "bf16wo"}) {
    SCOPED_TRACE(scheme);
    const auto module = block_model();
    quantize_(*module, scheme);
    const auto inputs = block_inputs();
    const auto fused = baseline_compile(module, {});
    const auto apart = baseline_compile(module, switched_off("mixed_mm"));
    const auto low_bit = fused->report(inputs), plain = apart->report(inputs);
    ASSERT_EQ(plain.steps.size(), low_bit.steps.size()) << "fused as before";
    for (size_t i = 0; i < plain.steps.size(); ++i) {
      if (plain.steps[i].target != "halftone::fused_linear") continue;
      EXPECT_THAT(plain.steps[i].kernel, StartsWith("fp32"));
      EXPECT_THAT(low_bit.steps[i].kernel, Not(StartsWith("fp32")));
      EXPECT_GT(plain.steps[i].bytes, low_bit.steps[i].bytes);
    }
    const auto restored = baseline_compile(block_with_restored_weights(scheme), {});
    expect_close(apart->run(inputs), restored->run(inputs), 0);
    expect_close(apart->run(inputs), fused->run(inputs), 1e-3);
  }
}

TEST(BaselineFusion, MixedProductsOfQuantizedActivationsStay) {
  const auto module = block_model();
  quantize_(*module, QuantConfig(Int4WeightOnlyConfig{.activations = Int4Activations::kInt8}));
  const auto inputs = block_inputs();
  const auto apart = baseline_compile(module, switched_off("mixed_mm"));
  EXPECT_THAT(apart->notes(), Contains(HasSubstr("0 weights are in float32")));
  expect_close(apart->run(inputs), baseline_compile(module, {})->run(inputs), 0);
}

}  // namespace
}  // namespace halftone
