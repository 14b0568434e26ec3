#include "halftone/quant/diagnose.h"

#include <ATen/ops/eye.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "quant/graph/diagnose_difference.h"
#include "quant/graph/test_models.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;

TEST(Diagnose, MeasuresEveryLayerAndSortsByHarm) {
  const auto module = small_model();
  const std::string before = print_graph(module->graph());
  const Diagnosis diagnosis =
      diagnose(*module, "int4wo", {{at::randint(20, {3}, at::kLong)}}, {.overrides = {{"head", "int8wo"}}});
  ASSERT_EQ(diagnosis.layers.size(), 3U);
  double sum = 0;
  double last = 1;
  for (const LayerDiagnosis& layer : diagnosis.layers) {
    sum += layer.share;
    EXPECT_LE(layer.share, last);
    last = layer.share;
    EXPECT_GT(layer.weight.snr_db, 15);
    EXPECT_GT(layer.output.cosine, 0.98);
    EXPECT_GT(layer.output.max_error, 0);
  }
  EXPECT_NEAR(sum, 1, 1e-9);
  // Eight bits against four: the head is the least of the three troubles.
  EXPECT_EQ(diagnosis.layers.back().layer.name, "head");
  EXPECT_GT(diagnosis.layers.back().weight.snr_db, 35);
  EXPECT_GT(diagnosis.result.cosine, 0.95);
  EXPECT_EQ(print_graph(module->graph()), before);
}

TEST(Diagnose, AnExactLayerBringsNoNoise) {
  // 448 is the largest float8: it and zero are kept as they are.
  const auto module = module_from_text(
      "graph(%a: parameter \"exact.weight\" f32[4, 4], %b: parameter \"other.weight\" f32[4, 4], %x: user "
      "\"x\" f32[2, 4]) {\n"
      "  %h: f32[2, 4] = aten::linear(%x, %a)\n  %y: f32[2, 4] = aten::linear(%h, %b)\n  return %y\n}\n",
      {{"exact.weight", at::eye(4).mul(448)}, {"other.weight", at::randn({4, 4})}});
  const Diagnosis diagnosis = diagnose(*module, "fp8wo", {{at::randn({2, 4})}, {at::randn({2, 4})}});
  ASSERT_EQ(diagnosis.layers.size(), 2U);
  EXPECT_EQ(diagnosis.layers[0].layer.name, "other");
  EXPECT_NEAR(diagnosis.layers[0].share, 1, 1e-6);
  EXPECT_GT(diagnosis.layers[1].weight.snr_db, 100);
}

TEST(Diagnose, NotANumberIsComparedElementByElement) {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  Difference difference;
  difference.add(at::tensor({1.0, nan, inf, -inf, nan, 2.0, inf}),
                 at::tensor({1.0, nan, inf, inf, 3.0, nan, inf}));
  const ErrorMeasure found = difference.measure();
  EXPECT_EQ(found.finite, 1);
  EXPECT_EQ(found.same_not_finite, 3);
  EXPECT_EQ(found.differing_not_finite, 3);
  EXPECT_FALSE(found.is_exact());
  EXPECT_EQ(found.cosine, 1);
  EXPECT_EQ(found.max_error, 0);
  Difference same;
  same.add(at::tensor({1.0, nan}), at::tensor({1.0, nan}));
  EXPECT_TRUE(same.measure().is_exact());
}

TEST(Diagnose, AResultWithNansIsNotExact) {
  const auto module = module_from_text(
      "graph(%w: parameter \"f.weight\" f32[32, 32], %x: user \"x\" f32[4, 32]) {\n"
      "  %h: f32[4, 32] = aten::linear(%x, %w)\n  %y: f32[4, 32] = aten::log(%h)\n  return %y\n}\n",
      {{"f.weight", at::randn({32, 32})}});
  const Diagnosis diagnosis = diagnose(*module, "int4wo", {{at::randn({4, 32})}});
  EXPECT_FALSE(diagnosis.result.is_exact());
  EXPECT_GT(diagnosis.result.same_not_finite, 20);
  EXPECT_GT(diagnosis.result.max_error, 0);
  EXPECT_GT(diagnosis.result.snr_db, 0);
  EXPECT_NEAR(diagnosis.layers.at(0).share, 1, 1e-9);
}

TEST(Diagnose, RefusesAModelThatDrawsRandomNumbers) {
  const auto module = module_from_text(
      "graph(%w: parameter \"f.weight\" f32[32, 32], %x: user \"x\" f32[4, 32]) {\n"
      "  %h: f32[4, 32] = aten::linear(%x, %w)\n  %n: f32[4, 32] = aten::bernoulli.p(%h, 0.5)\n"
      "  %y: f32[4, 32] = aten::add.Tensor(%h, %n)\n  return %y\n}\n",
      {{"f.weight", at::randn({32, 32})}});
  EXPECT_THAT(message_of(ErrorCode::kUnsupported,
                         [&] {
                           diagnose(*module, "int8wo", {{at::randn({4, 32})}});
                         }),
              HasSubstr("this model draws random numbers (aten::bernoulli.p): results cannot be compared"));
}

TEST(Diagnose, NeedsACallAndReportsProgress) {
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [] { diagnose(*small_model(), "int8wo", {}); }),
              HasSubstr("at least one call"));
  int64_t last = 0;
  diagnose(*small_model(), "int8wo", {{at::randint(20, {3}, at::kLong)}},
           {.progress = [&](int64_t done, int64_t total, std::string_view) {
             EXPECT_EQ(total, 5);
             last = done;
           }});
  EXPECT_EQ(last, 5);
}

}  // namespace
}  // namespace halftone
