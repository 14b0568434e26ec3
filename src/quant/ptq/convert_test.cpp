// From a prepared model to a reference graph.
#include <malloc.h>

#include <cmath>

#include "quant/ptq/test_models.h"

namespace halftone {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

PreparedModel calibrated_linear(const QConfigMapping& mapping) {
  PreparedModel prepared =
      prepare(*linear_model(), mapping, {at::zeros({1, 3})}, builtin_backend_config("native"));
  prepared.calibrate({at::tensor({-1.0F, 0.5F, 1.55F}).view({1, 3})});
  return prepared;
}

TEST(PtqConvert, TheReferenceGraphOfALinear) {
  const ConvertResult result = convert(calibrated_linear(plain_mapping()));
  // x in [-1, 1.55]: scale 0.01, zero point 100. Rows of the weight: 1.27 and 2.54 over 127.5.
  EXPECT_EQ(
      print_graph(result.module->graph()),
      R"(graph(%x: user "x" f32[1, 3], %p_fc_weight_values: parameter "fc.weight:values" i8[2, 3], %p_fc_weight_scale: parameter "fc.weight:scale" f32[2], %p_fc_weight_zero_point: parameter "fc.weight:zero_point" i32[2]) {
  %p_fc_weight_values_dq: f32[2, 3] = halftone::dequantize_per_channel(%p_fc_weight_values, %p_fc_weight_scale, %p_fc_weight_zero_point, 0)  @ "fc" "torch.nn.modules.linear.Linear"
  %x_q: u8[1, 3] = halftone::quantize_per_tensor(%x, 0.009999999776482582, 100, 0, 255, dtype:u8)  @ "fc" "torch.nn.modules.linear.Linear"
  %x_dq: f32[1, 3] = halftone::dequantize_per_tensor(%x_q, 0.009999999776482582, 100)  @ "fc" "torch.nn.modules.linear.Linear"
  %y: f32[1, 2] = aten::linear(%x_dq, %p_fc_weight_values_dq)  @ "fc" "torch.nn.modules.linear.Linear"
  %y_q: u8[1, 2] = halftone::quantize_per_tensor(%y, 0.016859805211424828, 134, 0, 255, dtype:u8)  @ "fc" "torch.nn.modules.linear.Linear"
  %y_dq: f32[1, 2] = halftone::dequantize_per_tensor(%y_q, 0.016859805211424828, 134)  @ "fc" "torch.nn.modules.linear.Linear"
  return %y_dq
}
)");
  EXPECT_TRUE(at::equal(result.module->tensor("fc.weight:values"),
                        at::tensor({127, 0, -64, 0, 127, 25}).view({2, 3}).to(at::kChar)));
}

TEST(PtqConvert, StaysNearTheFloatModelAndChangesNothingElse) {
  const auto model = residual_model();
  const std::string before = print_graph(model->graph());
  PreparedModel prepared =
      prepare(*model, plain_mapping(), {residual_input(0)}, builtin_backend_config("native"));
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const at::Tensor x = residual_input(seed);
    EXPECT_TRUE(at::allclose(prepared.calibrate({x})[0].toTensor(), first_output(model, x), 1e-4, 1e-5));
  }
  const ConvertResult result = convert(prepared);
  EXPECT_EQ(print_graph(model->graph()), before);
  const at::Tensor x = residual_input(1), wanted = first_output(model, x);
  const at::Tensor error = (first_output(result.module, x) - wanted).abs();
  EXPECT_LT(error.max().item<float>(), 0.05 * wanted.abs().max().item<float>());
  EXPECT_GT(error.max().item<float>(), 0);
  EXPECT_EQ(count_nodes(*result.module, "aten::batch_norm"), 0U);
  EXPECT_EQ(count_nodes(*result.module, "halftone::quantize_per_tensor"), 3U);
  EXPECT_THAT(result.report.folded, ElementsAre("bn1"));
  EXPECT_EQ(result.report.quantized(), 2U);
  EXPECT_TRUE(result.report.float_operations.empty());
  EXPECT_THAT(result.report.to_text(), HasSubstr("2 of 2 matched patterns quantized, 1 batch norm folded"));
  EXPECT_THAT(result.report.to_json(), HasSubstr("\"layer\": \"conv2\""));
}

TEST(PtqConvert, FuseFoldsAndKeepsTheResult) {
  const auto model = residual_model();
  std::vector<std::string> folded;
  const auto fused = fuse(*model, builtin_backend_config("native"), &folded);
  EXPECT_THAT(folded, ElementsAre("bn1"));
  EXPECT_EQ(count_nodes(*fused, "aten::batch_norm"), 0U);
  EXPECT_EQ(fused->tensors()->count("bn1.running_var"), 0U);
  const at::Tensor x = residual_input(3);
  EXPECT_TRUE(at::allclose(first_output(fused, x), first_output(model, x), 1e-4, 1e-5));
}

TEST(PtqConvert, ABufferThatIsOnlyWrittenStays) {
  const auto model = module_from_text(
      R"(graph(%w: parameter "fc.weight" f32[2, 3], %last: buffer "last" f32[1, 2], %x: user "x" f32[1, 3]) {
           %y: f32[1, 2] = aten::linear(%x, %w)  @ "fc" "torch.nn.modules.linear.Linear"
           return %y, buffer_mutation "last" %y
         })",
      {{"fc.weight", at::tensor({1.27F, 0.0F, -0.635F, 0.0F, 2.54F, 0.5F}).view({2, 3})},
       {"last", at::zeros({1, 2})}});
  const at::Tensor x = at::tensor({-1.0F, 0.5F, 1.55F}).view({1, 3});
  const auto expect_written = [&](const std::shared_ptr<GraphModule>& module) {
    Session session(module);
    const at::Tensor y = session.run({x}).at(0).toTensor();
    EXPECT_TRUE(at::equal(session.state("last"), y));
    EXPECT_GT(y.abs().max().item<float>(), 0);
  };
  expect_written(fuse(*model, builtin_backend_config("native")));
  PreparedModel prepared = prepare(*model, plain_mapping(), {x}, builtin_backend_config("native"));
  prepared.calibrate({x});
  expect_written(convert(prepared).module);
}

TEST(PtqConvert, ReducedRangesAreKeptUnlessTheWholeDtypeIsAskedFor) {
  QConfig reduced = *plain_mapping().find("", {}, 0);
  reduced.activation.reduce_range = true;
  QConfigMapping mapping;
  const PreparedModel prepared = calibrated_linear(mapping.set_global(reduced));
  const auto largest = [&](bool whole) {
    const ConvertResult result = convert(prepared, {.whole_dtype = whole});
    return *result.module->graph().value("x_q")->producer()->try_input("quant_max")->as_int();
  };
  EXPECT_EQ(largest(false), 127);
  EXPECT_EQ(largest(true), 255);
}

TEST(PtqConvert, CatAndPoolingShareOneScale) {
  at::manual_seed(4);
  const auto model = module_from_text(
      R"(graph(%a: user "a" f32[1, 2, 4, 4], %b: user "b" f32[1, 2, 4, 4]) {
           %r: f32[1, 2, 4, 4] = aten::hardswish(%a)
           %c: f32[1, 4, 4, 4] = aten::cat([%r, %b], 1)
           %p: f32[1, 4, 2, 2] = aten::max_pool2d(%c, [2, 2])
           %s: f32[1, 4, 2, 2] = aten::add.Tensor(%p, 1)
           return %s
         })");
  const std::vector<c10::IValue> inputs = {at::randn({1, 2, 4, 4}), at::randn({1, 2, 4, 4}) * 9};
  PreparedModel prepared = prepare(*model, plain_mapping(), inputs, builtin_backend_config("native"));
  prepared.calibrate(inputs);
  const PtqReport report = convert(prepared).report;
  std::map<std::string, float> scales;
  for (const QuantizedValueInfo& value : report.values)
    scales[value.value] = value.qparams.scale.item<float>();
  EXPECT_EQ(scales.size(), 6U);
  EXPECT_NE(scales["a"], scales["r"]);
  for (const char* name : {"b", "c", "p", "s"}) EXPECT_EQ(scales[name], scales["r"]) << name;
}

TEST(PtqConvert, AReshapeOfFloatsPassesThemOn) {
  const auto model = module_from_text(
      R"(graph(%w: parameter "fc.weight" f32[2, 4], %x: user "x" f32[2, 2]) {
           %v: f32[1, 4] = aten::reshape(%x, [1, 4])
           %y: f32[1, 2] = aten::linear(%v, %w)  @ "fc" "torch.nn.modules.linear.Linear"
           return %y
         })",
      {{"fc.weight", at::ones({2, 4})}});
  PreparedModel prepared = prepare(*model, default_qconfig_mapping("x86"), {at::ones({2, 2})});
  EXPECT_THAT(pattern_lines(prepared.patterns()), ElementsAre("!Tensor.reshape @ ", "torch.nn.Linear @ fc"));
  prepared.calibrate({at::tensor({-1.0F, 0.5F, 1.0F, 2.0F}).view({2, 2})});
  const ConvertResult result = convert(prepared);
  EXPECT_NE(result.module->graph().try_value("v_q"), nullptr);
  ASSERT_EQ(result.report.float_operations.size(), 1U);
  EXPECT_EQ(result.report.float_operations[0].reason, "its operand stays float");
  EXPECT_THAT(result.report.to_text(), HasSubstr("Matched, and not quantized\n"));
  EXPECT_THAT(result.report.to_text(), HasSubstr("Tensor.reshape (its operand stays float)"));
}

TEST(PtqConvert, WhatNoPatternTakesIsSaidWithItsNames) {
  const auto model = module_from_text(
      R"(graph(%w: parameter "fc.weight" f32[2, 4], %x: user "x" f32[1, 4]) {
           %s: f32[1, 4] = aten::cumsum(%x, 1)
           %y: f32[1, 2] = aten::linear(%s, %w)  @ "fc" "torch.nn.modules.linear.Linear"
           return %y
         })",
      {{"fc.weight", at::ones({2, 4})}});
  PreparedModel prepared = prepare(*model, default_qconfig_mapping("x86"), {at::ones({1, 4})});
  prepared.calibrate({at::ones({1, 4})});
  const ConvertResult result = convert(prepared);
  ASSERT_EQ(result.report.float_operations.size(), 1U);
  EXPECT_THAT(result.report.float_operations[0].reason,
              AllOf(HasSubstr("no pattern of the backend config takes "), HasSubstr("aten::cumsum")));
}

TEST(PtqConvert, DynamicSchemesNeedNoCalibration) {
  QConfigMapping mapping;
  const PreparedModel prepared =
      prepare(*linear_model(), mapping.set_global(qconfig_by_name("per_channel_dynamic")), {at::ones({1, 3})},
              builtin_backend_config("native"));
  const ConvertResult result = convert(prepared);
  EXPECT_EQ(count_nodes(*result.module, "halftone::quantize_dequantize_dynamic"), 1U);
  EXPECT_EQ(count_nodes(*result.module, "halftone::quantize_per_tensor"), 0U);
  const at::Tensor x = at::tensor({-1.0F, 0.5F, 1.55F}).view({1, 3});
  EXPECT_TRUE(at::allclose(first_output(result.module, x), first_output(linear_model(), x), 0.03, 0.03));
}

TEST(PtqConvert, EmptyCalibrationIsAnErrorThatNamesTheLayer) {
  const PreparedModel prepared =
      prepare(*linear_model(), plain_mapping(), {at::ones({1, 3})}, builtin_backend_config("native"));
  expect_error(ErrorCode::kState, {"test model", "%x", "fc", "never observed"}, [&] { convert(prepared); });
}

TEST(PtqConvert, NanIsAnErrorThatNamesTheLayer) {
  PreparedModel prepared =
      prepare(*residual_model(), plain_mapping(), {residual_input(0)}, builtin_backend_config("native"));
  at::Tensor x = residual_input(0);
  x.view(-1)[5] = std::nanf("");
  expect_error(ErrorCode::kInvalidArgument, {"sample 1", "%x", "conv1", "NaN"},
               [&] { prepared.calibrate({x}); });
  // Inside: the input is fine, the first convolution's result is not.
  const auto broken = residual_model();
  broken->tensor("conv2.bias").fill_(std::nanf(""));
  PreparedModel inner =
      prepare(*broken, plain_mapping(), {residual_input(0)}, builtin_backend_config("native"));
  expect_error(ErrorCode::kInvalidArgument, {"%y", "NaN"}, [&] { inner.calibrate({residual_input(0)}); });
}

TEST(PtqConvert, NanInAWeightNamesTheWeight) {
  const auto model = linear_model();
  model->tensor("fc.weight").view(-1)[0] = std::nanf("");
  QConfigMapping mapping;
  const PreparedModel prepared = prepare(*model, mapping.set_global(qconfig_by_name("per_channel_dynamic")),
                                         {at::ones({1, 3})}, builtin_backend_config("native"));
  expect_error(ErrorCode::kInvalidArgument, {"fc.weight", "NaN"}, [&] { convert(prepared); });
}

TEST(PtqConvert, WrongInputsAreRefusedBeforeAnythingIsObserved) {
  expect_error(ErrorCode::kGuard, {"test model"}, [] {
    prepare(*linear_model(), plain_mapping(), {at::ones({1, 4})}, builtin_backend_config("native"));
  });
  PreparedModel prepared =
      prepare(*linear_model(), plain_mapping(), {at::ones({1, 3})}, builtin_backend_config("native"));
  expect_error(ErrorCode::kGuard, {"test model"}, [&] { prepared.calibrate({at::ones({1, 4})}); });
  EXPECT_EQ(prepared.samples(), 0);
}

TEST(PtqStatistics, ServeAnotherScheme) {
  const auto scale_of = [](const PreparedModel& prepared) {
    return convert(prepared).report.values.back().qparams.scale.item<float>();
  };
  QConfig histogram = *plain_mapping().find("", {}, 0);
  histogram.activation = ObserverConfig(ObserverKind::kHistogram);
  QConfigMapping by_histogram;
  const PreparedModel calibrated = calibrated_linear(by_histogram.set_global(histogram));
  const std::string saved = calibrated.statistics_json();
  const auto fresh = [&](QConfig qconfig) {
    QConfigMapping mapping;
    return prepare(*linear_model(), mapping.set_global(qconfig), {at::ones({1, 3})},
                   builtin_backend_config("native"));
  };
  PreparedModel same = fresh(histogram);
  same.load_statistics(saved);
  EXPECT_EQ(same.samples(), 1);
  EXPECT_EQ(scale_of(same), scale_of(calibrated));
  QConfig reduced = histogram;
  reduced.activation.reduce_range = true;
  PreparedModel other = fresh(reduced);
  other.load_statistics(saved);
  EXPECT_GT(scale_of(other), 1.5 * scale_of(calibrated));
  PreparedModel plain = fresh(*plain_mapping().find("", {}, 0));
  plain.load_statistics(saved);
  EXPECT_EQ(scale_of(plain), scale_of(calibrated_linear(plain_mapping())));
  PreparedModel back = fresh(histogram);
  expect_error(ErrorCode::kCorruptFile, {"statistics.values", "MinMaxObserver", "HistogramObserver"},
               [&] { back.load_statistics(plain.statistics_json()); });
  expect_error(ErrorCode::kInvalidArgument, {"%x", "fc"},
               [&] { back.load_statistics(R"({"samples": 1, "values": {}})"); });
  expect_error(ErrorCode::kCorruptFile, {"statistics"}, [&] { back.load_statistics("{"); });
  EXPECT_EQ(back.samples(), 0);
}

TEST(PtqStatistics, MemoryDoesNotGrowWithSamples) {
  QConfig histogram = *plain_mapping().find("", {}, 0);
  histogram.activation = ObserverConfig(ObserverKind::kHistogram);
  QConfigMapping mapping;
  PreparedModel prepared = prepare(*residual_model(), mapping.set_global(histogram), {residual_input(0)},
                                   builtin_backend_config("native"));
  const auto bytes_after = [&](int64_t samples) {
    while (prepared.samples() < samples)
      prepared.calibrate({residual_input(static_cast<uint64_t>(prepared.samples()))});
    const struct mallinfo2 heap = mallinfo2();
    return static_cast<double>(heap.uordblks + heap.hblkhd);
  };
  const double after_64 = bytes_after(64);
  EXPECT_LT(bytes_after(512), 1.05 * after_64);
}

}  // namespace
}  // namespace halftone
