// The whole flow in one call, as a backend, as a file and as a candidate.
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "graph/test_support.h"
#include "halftone/backend/backend.h"
#include "halftone/checkpoint/checkpoint.h"
#include "halftone/compile/compile.h"
#include "halftone/ptq/static_int8.h"
#include "halftone/tune/tune.h"
#include "tune/test_support.h"

namespace halftone {
namespace {

using testing::HasSubstr;

/// Two convolutions with a sum around the second, pooling, a linear.
std::shared_ptr<GraphModule> small_net() {
  auto module = module_from_text(R"(
graph(%w1: parameter "conv1.weight" f32[8, 3, 3, 3], %b1: parameter "conv1.bias" f32[8],
      %w2: parameter "conv2.weight" f32[8, 8, 3, 3], %wl: parameter "head.weight" f32[5, 8], %x: user "x" f32[n, 3, 12, 12]) {
  %c1: f32[n, 8, 12, 12] = aten::conv2d(%x, %w1, %b1, [1, 1], [1, 1])  @ "conv1" "torch.nn.modules.conv.Conv2d"
  %r1: f32[n, 8, 12, 12] = aten::relu(%c1)
  %c2: f32[n, 8, 12, 12] = aten::conv2d(%r1, %w2, None, [1, 1], [1, 1])  @ "conv2" "torch.nn.modules.conv.Conv2d"
  %s: f32[n, 8, 12, 12] = aten::add.Tensor(%c2, %r1)
  %r2: f32[n, 8, 12, 12] = aten::relu(%s)
  %p: f32[n, 8, 1, 1] = aten::adaptive_avg_pool2d(%r2, [1, 1])
  %f: f32[n, 8] = aten::flatten.using_ints(%p, 1)
  %y: f32[n, 5] = aten::linear(%f, %wl)  @ "head" "torch.nn.modules.linear.Linear"
  return %y
})",
                                 {{"conv1.weight", at::randn({8, 3, 3, 3}) / 5},
                                  {"conv1.bias", at::randn({8}) / 5},
                                  {"conv2.weight", at::randn({8, 8, 3, 3}) / 8},
                                  {"head.weight", at::randn({5, 8})}});
  module->ranges["n"] = {1, 16};
  return module;
}

std::vector<std::vector<c10::IValue>> image_calls(int count) {
  std::vector<std::vector<c10::IValue>> calls;
  for (int i = 0; i < count; ++i) calls.push_back({at::randn({4, 3, 12, 12})});
  return calls;
}

std::vector<Sample> image_samples(int count) {
  std::vector<Sample> samples;
  for (const auto& call : image_calls(count)) samples.push_back({call, {}});
  return samples;
}

template <typename F>
void expect_refusal(ErrorCode code, const std::string& says, F run) {
  try {
    run();
    FAIL() << "no error; expected: " << says;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(says));
  }
}

TEST(QuantizeStatic, EveryWidthGivesAModelThatRunsCompiled) {
  const auto module = small_net();
  const auto calls = image_calls(6);
  for (const StaticInt8Bits bits :
       {StaticInt8Bits{8, 8}, StaticInt8Bits{7, 8}, StaticInt8Bits{8, 7}, StaticInt8Bits{7, 7}}) {
    const StaticInt8Result result = quantize_static(*module, calls, {.mapping = static_int8_mapping(bits)});
    EXPECT_GT(result.cosine, 0.995);
    EXPECT_EQ(result.calibrated, 6);
    EXPECT_TRUE(result.lowered.kept.empty()) << result.lowered.to_text();
    EXPECT_EQ(result.lowered.operators.at("halftone::int8_conv"), 2U);
    Session interpreted(result.module), compiled(result.module, compile(result.module));
    for (int64_t images : {1, 4, 7}) {
      const at::Tensor x = at::randn({images, 3, 12, 12});
      const at::Tensor want = interpreted.run({x}).at(0).toTensor();
      EXPECT_TRUE(compiled.run({x}).at(0).toTensor().equal(want)) << images << " images, " << bits.weight;
    }
  }
}

TEST(QuantizeStatic, TellsWhatEachLayerLost) {
  const StaticInt8Result result = quantize_static(*small_net(), image_calls(4));
  ASSERT_FALSE(result.errors.empty());
  for (const StaticLayerError& error : result.errors) {
    EXPECT_GT(error.cosine, 0.99) << error.layer;
    EXPECT_LT(error.noise_db, -20) << error.layer;
    EXPECT_GT(error.noise_db, -80) << error.layer;  // it was quantized
  }
  EXPECT_THAT(result.to_text(), HasSubstr("conv2"));
  EXPECT_THAT(result.to_text(), HasSubstr("4 calls calibrated"));
  const auto json = nlohmann::json::parse(result.to_json());
  EXPECT_EQ(json["layers"].size(), result.errors.size());
  EXPECT_EQ(json["cosine"].get<double>(), result.cosine);
}

TEST(QuantizeStatic, StatisticsServeOtherWidths) {
  const auto module = small_net();
  const auto calls = image_calls(4);
  const StaticInt8Result first = quantize_static(*module, calls);
  const auto narrow = static_int8_mapping({.activation = 7, .weight = 7});
  const StaticInt8Result again =
      quantize_static(*module, {calls[0]}, {.mapping = narrow, .statistics = first.statistics});
  const StaticInt8Result direct = quantize_static(*module, calls, {.mapping = narrow});
  const at::Tensor x = calls[1][0].toTensor();
  EXPECT_TRUE(
      Session(again.module).run({x})[0].toTensor().equal(Session(direct.module).run({x})[0].toTensor()));
}

TEST(QuantizeStatic, BadCallsLeaveTheModuleAlone) {
  const auto module = small_net();
  const at::Tensor x = at::randn({2, 3, 12, 12});
  const at::Tensor before = Session(module).run({x})[0].toTensor();
  expect_refusal(ErrorCode::kInvalidArgument, "there are none", [&] { quantize_static(*module, {}); });
  at::Tensor bad = x.clone();
  bad[1][0][3][3] = std::numeric_limits<double>::quiet_NaN();
  expect_refusal(ErrorCode::kInvalidArgument, "NaN", [&] { quantize_static(*module, {{x}, {bad}}); });
  EXPECT_TRUE(Session(module).run({x})[0].toTensor().equal(before));
}

TEST(StaticInt8Backend, SavesAndLoadsWhatItCalibrated) {
  const TestFolder folder;
  Backend backend(static_int8_backend_recipe({.bits = {7, 7}}));
  backend.build(small_net(), {}, image_samples(4));
  const std::string path = folder.path / "static.ht";
  save(backend, path);
  backend.activate();
  Backend loaded = load(path);
  loaded.activate();
  const at::Tensor x = at::randn({3, 3, 12, 12});
  const auto answer = [&](Backend& each) {
    return each.infer({x}, {}).toTupleRef().elements().at(0).toTensor();
  };
  EXPECT_TRUE(answer(loaded).equal(answer(backend)));
}

TEST(StaticInt8Backend, ConfigsAreChecked) {
  const auto recipe = make_backend_recipe("StaticInt8Backend", R"({"weight_bits": 7})");
  EXPECT_EQ(make_backend_recipe(recipe->type(), recipe->config())->config(), recipe->config());
  EXPECT_THAT(recipe->describe_config(), HasSubstr("weight_bits=7"));
  expect_refusal(ErrorCode::kInvalidArgument, "7 or 8",
                 [] { make_backend_recipe("StaticInt8Backend", R"({"weight_bits": 6})"); });
  expect_refusal(ErrorCode::kInvalidArgument, "7 or 8",
                 [] { make_backend_recipe("StaticInt8Backend", R"({"weight_bits": "7"})"); });
  expect_refusal(ErrorCode::kInvalidArgument, "x68",
                 [] { make_backend_recipe("StaticInt8Backend", R"({"backend_config": "x68"})"); });
  expect_refusal(ErrorCode::kInvalidArgument, "true or false",
                 [] { make_backend_recipe("StaticInt8Backend", R"({"only_convolutions": 1})"); });
}

TEST(StaticInt8Backend, IsACandidateOfTuning) {
  TuneOptions options;
  options.time_limit = 6;
  options.confidence = 0.1;
  options.candidates = select_candidates({}, {"int8static", "int8static-7bit"});
  Samples samples(image_samples(6));
  const TuneResult result = tune(small_net(), samples, max_throughput(), options);
  std::vector<std::string> validated;
  for (const CandidateReport& candidate : result.report.candidates) {
    if (candidate.name.starts_with("int8static")) validated.push_back(candidate.name);
    EXPECT_NE(candidate.verdict, Verdict::kFailed) << result.report.to_text();
  }
  EXPECT_EQ(validated.size(), 2U);
}

TEST(StaticInt8Backend, WithoutConvolutionsItIsRefusedUnlessAskedFor) {
  const auto module = module_from_text(R"(
graph(%w: parameter "fc.weight" f32[8, 8], %x: user "x" f32[s0, 8]) {
  %y: f32[s0, 8] = aten::linear(%x, %w)  @ "fc" "torch.nn.modules.linear.Linear"
  return %y
})",
                                       {{"fc.weight", at::randn({8, 8})}});
  const std::vector<Sample> samples = {{{at::randn({4, 8})}, {}}};
  const auto build = [&](bool only_convolutions) {
    Backend backend(static_int8_backend_recipe({.only_convolutions = only_convolutions}));
    backend.build(module, {}, samples);
  };
  expect_refusal(ErrorCode::kUnsupported, "no convolution", [&] { build(true); });
  build(false);
}

}  // namespace
}  // namespace halftone
