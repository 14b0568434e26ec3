// Every model of the suite: it runs, its numbers are the same everywhere, its graph gives what it gives, and
// compiled it stays within 1e-4.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/isfinite.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <span>

#include "base/sha256.h"
#include "bench/suite/models.h"
#include "bench/suite/weights.h"
#include "capture/module/test_support.h"
#include "halftone/compile/compile.h"

namespace halftone {
namespace {

std::string digest_of(const at::Tensor& tensor) {
  const std::string bytes = ModuleBytes::bytes_of(tensor);
  return to_hex(sha256(std::as_bytes(std::span(bytes))));
}

std::vector<at::Tensor> float_results(const c10::IValue& result) {
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& leaf : leaves_of(result))
    if (leaf.isTensor() && leaf.toTensor().is_floating_point()) tensors.push_back(leaf.toTensor().detach());
  return tensors;
}

/// |a - b| / |a| over all results together.
double distance(const c10::IValue& expected, const c10::IValue& found) {
  const auto a = float_results(expected), b = float_results(found);
  if (a.size() != b.size()) return 1e9;
  double difference = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]).to(at::kDouble).pow(2).sum().item<double>();
    size += a[i].to(at::kDouble).pow(2).sum().item<double>();
  }
  return std::sqrt(difference / size);
}

class SuiteModels : public ::testing::TestWithParam<std::string> {};

TEST_P(SuiteModels, GraphAndCompiledGraphGiveWhatTheModuleGives) {
  const SuiteModel model = make_suite_model(GetParam());
  EXPECT_EQ(model.name, GetParam());
  EXPECT_FALSE(model.module->is_training());
  const Samples samples = model.samples(1, 2);
  const at::NoGradGuard no_grad;
  const c10::IValue expected = model.forward(samples.calls[1].args);
  const auto results = float_results(expected);
  ASSERT_FALSE(results.empty());
  for (const at::Tensor& result : results) {
    EXPECT_TRUE(at::isfinite(result).all().item<bool>());
    const double size = result.to(at::kDouble).pow(2).mean().sqrt().item<double>();
    EXPECT_GT(size, 1e-3) << "activations vanish";
    EXPECT_LT(size, 1e2) << "activations explode";
  }
  CaptureOptions options;
  options.name = model.name;
  options.input_names = model.input_names;
  options.check = false;  // compared below
  const auto graph = capture(*model.module, model.forward, samples.calls[0].args, options);
  EXPECT_LT(distance(expected, Session(graph)(samples.calls[1].args)), 1e-5);
  EXPECT_LT(distance(expected, Session(graph, compile(graph))(samples.calls[1].args)), 1e-4);
}

TEST_P(SuiteModels, HasLossWithGradientsForItsParameters) {
  const SuiteModel model = make_suite_model(GetParam());
  model.module->train();
  const Sample sample = model.sample(2, 3);
  const at::Tensor loss = model.loss(model.forward(sample.args), sample.args);
  ASSERT_EQ(loss.numel(), 1);
  EXPECT_TRUE(std::isfinite(loss.item<double>()));
  loss.backward();
  for (const auto& item : model.module->named_parameters()) {
    ASSERT_TRUE(item.value().grad().defined()) << item.key();
    EXPECT_TRUE(at::isfinite(item.value().grad()).all().item<bool>()) << item.key();
  }
}

std::vector<std::string> suite_names() {
  std::vector<std::string> names;
  for (const BenchModelInfo& info : bench_models()) names.push_back(info.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, SuiteModels, ::testing::ValuesIn(suite_names()),
                         [](const auto& info) { return info.param; });

TEST(Suite, HasTwelveModelsAtLeastSortedAndDescribed) {
  EXPECT_GE(bench_models().size(), 12U);
  const std::vector<std::string> names = suite_names();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  for (const BenchModelInfo& info : bench_models()) {
    EXPECT_FALSE(info.what.empty());
    EXPECT_GE(info.batch_size, 1);
  }
}

TEST(Suite, RefusesUnknownNamesWithTheNearest) {
  expect_error(ErrorCode::kInvalidArgument, {"resnet5", "resnet50"}, [] { make_suite_model("resnet5"); });
}

TEST(Suite, WeightsAreTheSameEverywhereAndDifferBySeed) {
  // Written down once: on another machine, with other threads or another torch they must be the same.
  const SuiteModel model = make_suite_model("tiny_mlp");
  EXPECT_EQ(digest_of(model.module->named_parameters()["fc0.weight"]).substr(0, 16), "f88fa286f77e6878");
  EXPECT_EQ(digest_of(drawn_floats({3, 5}, 7)).substr(0, 16), "d5e3f41b6871844a");
  EXPECT_EQ(digest_of(drawn_ids({3, 5}, 1000, 7)).substr(0, 16), "a806dc4c39d88a74");
  const auto bytes = [](const SuiteModel& each) { return ModuleBytes::of(*each.module).memory; };
  EXPECT_EQ(bytes(model), bytes(make_suite_model("tiny_mlp", 0)));
  EXPECT_NE(bytes(model), bytes(make_suite_model("tiny_mlp", 1)));
}

TEST(Suite, LeavesTheRandomStateAlone) {
  const at::Generator& generator = at::detail::getDefaultCPUGenerator();
  const at::Tensor before = generator.get_state();
  make_suite_model("mlp").samples(2);
  EXPECT_TRUE(at::equal(generator.get_state(), before));
}

TEST(Suite, DrawnNumbersHaveTheirShape) {
  const at::Tensor floats = drawn_floats({100'000}, 3);
  EXPECT_NEAR(floats.mean().item<double>(), 0, 0.02);
  EXPECT_NEAR(floats.std().item<double>(), 1, 0.02);
  EXPECT_LT(floats.abs().max().item<double>(), 3.5);
  const at::Tensor ids = drawn_ids({100'000}, 10, 3);
  EXPECT_EQ(ids.min().item<int64_t>(), 0);
  EXPECT_EQ(ids.max().item<int64_t>(), 9);
  EXPECT_NEAR(ids.to(at::kDouble).mean().item<double>(), 4.5, 0.05);
}

TEST(Suite, SamplesOfAModelDifferAndRepeat) {
  const SuiteModel model = make_suite_model("tiny_mlp");
  const Samples first = model.samples(3, 4, 1), again = model.samples(3, 4, 1),
                other = model.samples(3, 4, 2);
  std::set<std::string> seen;
  for (size_t i = 0; i < 4; ++i) {
    const at::Tensor x = first.calls[i].args[0].toTensor();
    EXPECT_EQ(x.size(0), 3);
    EXPECT_TRUE(at::equal(x, again.calls[i].args[0].toTensor()));
    seen.insert(digest_of(x));
    seen.insert(digest_of(other.calls[i].args[0].toTensor()));
  }
  EXPECT_EQ(seen.size(), 8U);
}

}  // namespace
}  // namespace halftone
