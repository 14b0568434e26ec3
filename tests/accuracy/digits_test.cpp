// A classifier trained here, in C++, on real handwritten digits: what each scheme costs in right answers.
#include <gtest/gtest.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/utils.h>

#include "halftone/graph/tensor_file.h"
#include "halftone/quant/quantize.h"

namespace {

using namespace halftone;

struct Digits {
  at::Tensor train_images, train_labels, test_images, test_labels;
};

/// Every second image is for testing.
Digits load_digits() {
  const TensorFile file = load_tensors(DIGITS_FILE);
  const at::Tensor images = file.tensors.at("images").to(at::kFloat) / 16;
  const at::Tensor labels = file.tensors.at("labels").to(at::kLong);
  const auto half = [](const at::Tensor& all, int64_t start) {
    return all.slice(0, start, std::nullopt, 2).contiguous();
  };
  return {half(images, 0), half(labels, 0), half(images, 1), half(labels, 1)};
}

torch::nn::Sequential make_classifier() {
  using torch::nn::Linear;
  using torch::nn::ReLU;
  return torch::nn::Sequential(Linear(64, 128), ReLU(), Linear(128, 64), ReLU(), Linear(64, 10));
}

torch::nn::Sequential train(const Digits& digits) {
  torch::manual_seed(20261116);
  torch::nn::Sequential model = make_classifier();
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(3e-3));
  constexpr int kEpochs = 60;
  constexpr int64_t kBatch = 64;
  const int64_t count = digits.train_images.size(0);
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const at::Tensor order = torch::randperm(count);
    for (int64_t start = 0; start < count; start += kBatch) {
      const at::Tensor rows = order.slice(0, start, start + kBatch);
      optimizer.zero_grad();
      torch::nn::functional::cross_entropy(model->forward(digits.train_images.index_select(0, rows)),
                                           digits.train_labels.index_select(0, rows))
          .backward();
      optimizer.step();
    }
  }
  model->eval();
  return model;
}

/// Percent of right answers.
double top1(torch::nn::Sequential& model, const Digits& digits) {
  const c10::InferenceMode inference;
  return 100 * model->forward(digits.test_images)
                   .argmax(1)
                   .eq(digits.test_labels)
                   .to(at::kDouble)
                   .mean()
                   .item<double>();
}

class DigitsClassifier : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    digits_ = load_digits();
    trained_ = train(digits_);
    exact_ = top1(trained_, digits_);
    RecordProperty("fp32_top1", std::to_string(exact_));
  }
  static void TearDownTestSuite() { trained_ = nullptr; }

  /// How many points of top-1 the config loses; negative if it gains.
  static double loss(const QuantConfig& config) {
    auto copy = std::dynamic_pointer_cast<torch::nn::SequentialImpl>(trained_->clone());
    torch::nn::Sequential model(copy);
    const QuantizeReport report = quantize_(*model, config);
    EXPECT_EQ(report.count(LayerReport::Outcome::kQuantized), 3u);
    const double points = exact_ - top1(model, digits_);
    std::printf("%-80s loses %.2f points of %.2f\n", config.describe().c_str(), points, exact_);
    return points;
  }

  static inline Digits digits_;
  static inline torch::nn::Sequential trained_{nullptr};
  static inline double exact_ = 0;
};

TEST_F(DigitsClassifier, LearnsItsTask) {
  EXPECT_GT(exact_, 95.0);
}

TEST_F(DigitsClassifier, Int8LosesAtMostThreeTenthsOfAPoint) {
  EXPECT_LE(loss("int8wo"), 0.3);
  EXPECT_LE(loss("int8dq"), 0.3);
  EXPECT_LE(loss(Int8DynamicActivationInt8WeightConfig{.weight_bits = 7}), 0.3);
  EXPECT_LE(loss(Int8DynamicActivationInt8WeightConfig{.symmetric_activations = true}), 0.3);
}

TEST_F(DigitsClassifier, Bfloat16LosesAtMostATenthOfAPoint) {
  EXPECT_LE(loss("bf16wo"), 0.1);
}

TEST_F(DigitsClassifier, Int4LosesAtMostOnePoint) {
  EXPECT_LE(loss("int4wo"), 1.0);
  EXPECT_LE(loss(Int4WeightOnlyConfig{.symmetric = false}), 1.0);
  EXPECT_LE(loss(Int4WeightOnlyConfig{.activations = Int4Activations::kInt8}), 1.0);
}

TEST_F(DigitsClassifier, Float8LosesAtMostThreeTenthsOfAPoint) {
  EXPECT_LE(loss("fp8wo"), 0.3);
  EXPECT_LE(loss("fp8dq"), 0.3);
}

}  // namespace
