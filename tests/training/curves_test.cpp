// Whole trainings: compiled, the loss goes the way that it goes in eager.
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/container/functional.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <fstream>

#include "halftone/compile/compile_module.h"
#include "halftone/graph/tensor_file.h"
#include "training/steps.h"

namespace halftone {
namespace {

constexpr int kSteps = 200;

/// A batch for a step: arguments of the model, and what should come out.
using Batches = std::function<std::pair<std::vector<c10::IValue>, at::Tensor>(int step)>;

struct Task {
  std::function<TrainingModel()> model;  ///< the same weights at each call
  Batches batches;
};

std::vector<double> train(const Task& task, const std::string& optimizer_name, const std::string& backend) {
  TrainingModel model = task.model();
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  if (optimizer_name == "SGD") {
    optimizer = std::make_unique<torch::optim::SGD>(model.module->parameters(),
                                                    torch::optim::SGDOptions(0.05).momentum(0.9));
  } else {
    optimizer =
        std::make_unique<torch::optim::AdamW>(model.module->parameters(), torch::optim::AdamWOptions(1e-3));
  }
  CompileModuleOptions options;
  options.backend = backend.empty() ? "eager" : backend;
  options.past_limit = CompileModuleOptions::PastLimit::kError;
  const CompiledModule compiled = compile(model.module, model.forward, options);
  std::vector<double> losses;
  for (int step = 0; step < kSteps; ++step) {
    const auto [inputs, target] = task.batches(step);
    const at::Tensor logits = (backend.empty() ? model.forward(inputs) : compiled(inputs)).toTensor();
    const at::Tensor loss = at::cross_entropy_loss(logits.view({-1, logits.size(-1)}), target.view({-1}));
    optimizer->zero_grad();
    loss.backward();
    optimizer->step();
    losses.push_back(loss.item<double>());
  }
  if (!backend.empty()) {
    EXPECT_EQ(compiled.counters().compilations, 1);
  }
  return losses;
}

Task digits() {
  const TensorMap data = load_tensors(DIGITS_FILE).tensors;
  const at::Tensor images = data.at("images").to(at::kFloat).flatten(1) / 16,
                   labels = data.at("labels").to(at::kLong);
  return {[] {
            torch::manual_seed(4);
            torch::nn::Sequential model(torch::nn::Linear(64, 48), torch::nn::Functional(at::relu),
                                        torch::nn::Linear(48, 10));
            auto impl = model.ptr();
            return TrainingModel{"digits",
                                 impl,
                                 [impl](const std::vector<c10::IValue>& args) -> c10::IValue {
                                   return impl->forward(args[0].toTensor());
                                 },
                                 {}};
          },
          [images, labels](int step) {
            const int64_t first = step * 64 % (images.size(0) - 64);
            return std::pair(std::vector<c10::IValue>{images.slice(0, first, first + 64)},
                             labels.slice(0, first, first + 64));
          }};
}

Task characters() {
  constexpr int64_t kBatch = 4, kLength = 24;
  std::ifstream stream(TEXT_FILE);
  const std::string text((std::istreambuf_iterator<char>(stream)), {});
  std::vector<int64_t> ids;
  for (const char letter : text) ids.push_back(static_cast<unsigned char>(letter) % 128);
  const at::Tensor all = at::tensor(ids, at::kLong);
  return {
      [] {
        torch::manual_seed(4);
        return character_transformer(128, 32, 2, kBatch, kLength);
      },
      [all](int step) {
        const int64_t span = kBatch * kLength, first = step * span % (all.size(0) - span - 1);
        return std::pair(
            std::vector<c10::IValue>{all.slice(0, first, first + span).view({kBatch, kLength}).contiguous()},
            all.slice(0, first + 1, first + span + 1).view({kBatch, kLength}).contiguous());
      }};
}

void expect_same_curve(const Task& task, const std::string& optimizer) {
  const std::vector<double> eager = train(task, optimizer, "");
  EXPECT_LT(eager.back(), 0.8 * eager.front()) << "it must learn, or the comparison says little";
  for (const char* backend : {"aot_eager", "aot_eager_decomp_partition", "halftone"}) {
    const std::vector<double> compiled = train(task, optimizer, backend);
    for (int step = 0; step < kSteps; ++step)
      ASSERT_NEAR(compiled[step], eager[step], 1e-4 * eager[step]) << backend << " step " << step;
  }
}

TEST(TrainingCurve, DigitsWithSgd) {
  expect_same_curve(digits(), "SGD");
}
TEST(TrainingCurve, DigitsWithAdamW) {
  expect_same_curve(digits(), "AdamW");
}
TEST(TrainingCurve, CharactersWithSgd) {
  expect_same_curve(characters(), "SGD");
}
TEST(TrainingCurve, CharactersWithAdamW) {
  expect_same_curve(characters(), "AdamW");
}

}  // namespace
}  // namespace halftone
