#include "tune/samples/sample_layout.h"

#include <ATen/Context.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tune/test_support.h"

namespace halftone {
namespace {

using testing::ElementsAre;

c10::IValue dict_of(const at::Tensor& a, const at::Tensor& b) {
  c10::impl::GenericDict dict(c10::StringType::get(), c10::AnyType::get());
  dict.insert("ids", a);
  dict.insert("mask", b);
  return dict;
}

/// (dict of two tensors, a number)
Sample text_call(int64_t batch, int64_t tokens) {
  return {{dict_of(at::randint(5, 90, {batch, tokens}), at::ones({batch, tokens}, at::kLong)), 7}, {}};
}

TEST(SampleLayout, InfersSizesThatChangeFromTheSamples) {
  const SampleLayout layout = lay_out(
      std::vector{text_call(1, 16), text_call(8, 16), text_call(1, 32), text_call(1, 16)}, nullptr, {}, 0);
  ASSERT_EQ(layout.shapes.size(), 3U);
  EXPECT_EQ(layout.shapes[0].label(), "1x16");
  EXPECT_EQ(layout.shapes[0].calls, 2U);
  EXPECT_EQ(layout.shapes[1].batch, 8);
  EXPECT_EQ(layout.shapes[2].batch, 1);
  // Both tensors change together: two symbols, four dimensions.
  ASSERT_EQ(layout.dynamic.size(), 4U);
  EXPECT_EQ(layout.dynamic[0].input, "input0");
  EXPECT_EQ(layout.dynamic[0].symbol, "batch");
  EXPECT_EQ(layout.dynamic[0].min, 1);
  EXPECT_EQ(layout.dynamic[1].symbol, layout.dynamic[3].symbol);
  EXPECT_EQ(layout.dynamic[1].min, 2);
  EXPECT_EQ(layout.dynamic[2].input, "input1");
  EXPECT_EQ(layout.dynamic[2].symbol, "batch");
  ASSERT_EQ(layout.ranges.size(), 2U);
  EXPECT_FALSE(layout.ranges[0].declared);
  EXPECT_EQ(layout.ranges[0].max, 8);
}

TEST(SampleLayout, TakesWhatIsDeclared) {
  Samples samples(std::vector{text_call(2, 16)});
  samples.dynamic = {{"mask", -1, "tokens", 1, 512}, {"ids", 1, "tokens", 1, 512}};
  samples.batch = BatchDim{"mask", 1};
  GraphSpec spec;
  spec.input_names = {"ids", "mask"};
  const SampleLayout layout = lay_out(samples, nullptr, spec, 0);
  EXPECT_EQ(layout.shapes[0].batch, 16);
  EXPECT_EQ(layout.shapes[0].tensors[1].name, "mask");
  EXPECT_EQ(layout.shapes[0].tensors[1].dtype, "i64");
  ASSERT_EQ(layout.ranges.size(), 1U);
  EXPECT_TRUE(layout.ranges[0].declared);
  EXPECT_EQ(layout.ranges[0].max, 512);
  samples.batch = BatchDim{"musk", 0};
  expect_error(ErrorCode::kInvalidArgument, {"batch", "did you mean \"mask\""},
               [&] { lay_out(samples, nullptr, spec, 0); });
  samples.batch = BatchDim{"mask", 2};
  expect_error(ErrorCode::kInvalidArgument, {"2 dimensions"}, [&] { lay_out(samples, nullptr, spec, 0); });
}

TEST(SampleLayout, AGraphKnowsItsOwnSizes) {
  const auto model = napping_model();
  Samples samples(std::vector{call_of(3)});
  const SampleLayout layout = lay_out(samples, model.get(), {}, 0);
  EXPECT_EQ(layout.shapes[0].tensors[0].name, "x");
  EXPECT_EQ(layout.shapes[0].batch, 3);
  EXPECT_TRUE(layout.dynamic.empty());
  ASSERT_EQ(layout.ranges.size(), 1U);
  EXPECT_EQ(layout.ranges[0].max, 64);
  samples.dynamic = {{"x", 0, "batch"}};
  expect_error(ErrorCode::kInvalidArgument, {"its own dynamic sizes"},
               [&] { lay_out(samples, model.get(), {}, 0); });
}

TEST(SampleLayout, AFixedSizeIsNoBatch) {
  const SampleLayout layout = lay_out(std::vector{call_of(3), call_of(3)}, nullptr, {}, 0);
  EXPECT_FALSE(layout.shapes[0].batch);
  EXPECT_TRUE(layout.ranges.empty());
}

TEST(SampleLayout, HoldsOutTheLastFifth) {
  std::vector<Sample> calls;
  for (int i = 0; i < 11; ++i) calls.push_back(call_of(2));
  const SampleLayout layout = lay_out(calls, nullptr, {}, 0);
  ASSERT_EQ(layout.validation.size(), 2U);
  EXPECT_EQ(layout.synthetic, 0U);
  EXPECT_EQ(layout.build.size(), 9U);
  EXPECT_TRUE(layout.validation[1].args[0].toTensor().is_same(calls[10].args[0].toTensor()));
  const SampleLayout two = lay_out(std::vector{call_of(2), call_of(2)}, nullptr, {}, 0);
  EXPECT_EQ(two.validation.size(), 1U);
  EXPECT_EQ(two.build.size(), 1U);
}

TEST(SampleLayout, TakesHeldOutSamplesAndMakesUpShapesThatTheyLack) {
  Samples samples(std::vector{call_of(2), call_of(4)});
  samples.held_out = {call_of(2)};
  const SampleLayout layout = lay_out(samples, nullptr, {}, 0);
  EXPECT_EQ(layout.validation.size(), 2U);
  EXPECT_EQ(layout.synthetic, 1U);
  EXPECT_EQ(layout.build.size(), 2U);
  EXPECT_EQ(layout.validation[1].args[0].toTensor().size(0), 4);
}

TEST(SampleLayout, RefusesSamplesThatAreNotAlike) {
  expect_error(ErrorCode::kInvalidArgument, {"sample 1", "differs"}, [] {
    lay_out(std::vector<Sample>{call_of(2), {{at::ones({2, 8}, at::kLong)}, {}}}, nullptr, {}, 0);
  });
  expect_error(ErrorCode::kInvalidArgument, {"sample 1"}, [] {
    lay_out(std::vector<Sample>{call_of(2), {{at::ones({2, 8}), at::ones({1})}, {}}}, nullptr, {}, 0);
  });
}

TEST(SyntheticSample, LooksLikeTheSample) {
  const at::Tensor floats = at::randn({64, 64}) * 3 + 10;
  const at::Tensor ids = at::randint(100, 200, {4, 64});
  const at::Tensor mask = at::ones({4, 64}, at::kLong);
  const Sample sample{{floats, dict_of(ids, mask), 3, c10::IValue()}, {{"scale", at::full({2}, 0.5)}}};
  const Sample made = synthetic_sample(sample, 1);
  const at::Tensor other = made.args[0].toTensor();
  EXPECT_FALSE(other.equal(floats));
  EXPECT_NEAR(other.mean().item<double>(), 10, 0.5);
  EXPECT_NEAR(other.std().item<double>(), 3, 0.3);
  const auto dict = made.args[1].toGenericDict();
  const at::Tensor made_ids = dict.at("ids").toTensor();
  EXPECT_FALSE(made_ids.equal(ids));
  EXPECT_GE(made_ids.min().item<int64_t>(), 100);
  EXPECT_LT(made_ids.max().item<int64_t>(), 200);
  EXPECT_TRUE(dict.at("mask").toTensor().equal(mask));
  EXPECT_EQ(made.args[2].toInt(), 3);
  EXPECT_TRUE(made.args[3].isNone());
  EXPECT_EQ(made.kwargs.at("scale").toTensor().sizes(), at::IntArrayRef({2}));
  EXPECT_TRUE(synthetic_sample(sample, 1).args[0].toTensor().equal(other));
  EXPECT_FALSE(synthetic_sample(sample, 2).args[0].toTensor().equal(other));
}

TEST(SyntheticSample, LeavesTheRandomStateAlone) {
  at::manual_seed(5);
  const at::Tensor expected = at::randn({3});
  at::manual_seed(5);
  synthetic_sample(call_of(2), 1);
  at::manual_seed(5);
  const Sample sample{{at::ones({3})}, {}};
  synthetic_sample(sample, 1);
  EXPECT_TRUE(at::randn({3}).equal(expected));
}

TEST(RangeEnds, RepeatAndCutTheSample) {
  const auto model = napping_model();
  const at::Tensor x = at::arange(16, at::kFloat).view({2, 8});
  const SampleLayout layout = lay_out(std::vector<Sample>{{{x}, {}}}, model.get(), {}, 0);
  const std::vector<RangeEnd> ends = range_ends(*model, layout);
  ASSERT_EQ(ends.size(), 2U);
  EXPECT_EQ(ends[0].note, "s0 = 1");
  EXPECT_TRUE(ends[0].call.args[0].toTensor().equal(x.slice(0, 0, 1)));
  EXPECT_EQ(ends[1].note, "s0 = 8 (the range ends at 64)");
  EXPECT_TRUE(ends[1].call.args[0].toTensor().equal(x.repeat({4, 1})));
  model->ranges["s0"] = {2, std::numeric_limits<int64_t>::max()};
  const auto open = range_ends(*model, lay_out(std::vector<Sample>{{{x}, {}}}, model.get(), {}, 0));
  ASSERT_EQ(open.size(), 2U);
  EXPECT_EQ(open[1].note, "s0 = 8 (the range has no end)");
}

TEST(FlatInputs, GoThereAndBack) {
  const auto model = napping_model();
  const Sample sample = call_of(2);
  const std::vector<c10::IValue> flat = flat_inputs(*model, sample);
  ASSERT_EQ(flat.size(), 1U);
  EXPECT_TRUE(sample_from_flat(*model, flat).args.at(0).toTensor().is_same(sample.args[0].toTensor()));
  expect_error(ErrorCode::kInvalidArgument, {"takes 1 input, not 2"}, [&] {
    sample_from_flat(*model, {1, 2});
  });
}

}  // namespace
}  // namespace halftone
