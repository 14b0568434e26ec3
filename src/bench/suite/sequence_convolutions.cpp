// Convolutions over sequences: a classifier of texts with windows of three widths, and a temporal network
// with holes that double from block to block.
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/relu.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>

#include "bench/suite/builders.h"

namespace halftone {
namespace {

constexpr int64_t kTextVocabulary = 16384, kTextTokens = 128, kTextWidth = 128, kTextFilters = 256;
constexpr int64_t kTcnWidth = 128, kTcnSteps = 512, kTcnChannels = 16;

struct TextCnn : torch::nn::Module {
  TextCnn() {
    words = register_module("words", torch::nn::Embedding(kTextVocabulary, kTextWidth));
    for (const int64_t window : {3, 4, 5})
      windows.push_back(
          register_module("window" + std::to_string(window),
                          torch::nn::Conv1d(torch::nn::Conv1dOptions(kTextWidth, kTextFilters, window))));
    hidden = register_module("hidden", torch::nn::Linear(3 * kTextFilters, 512));
    head = register_module("head", torch::nn::Linear(512, 20));
  }
  at::Tensor forward(const at::Tensor& ids) {
    const at::Tensor text = words(ids).transpose(1, 2);
    std::vector<at::Tensor> found;
    for (auto& window : windows) found.push_back(at::relu(window(text)).amax(2));
    return head(at::relu(hidden(at::cat(found, 1))));
  }
  torch::nn::Embedding words{nullptr};
  std::vector<torch::nn::Conv1d> windows;
  torch::nn::Linear hidden{nullptr}, head{nullptr};
};

/// Sees nothing of what comes after a step.
struct TcnBlock : torch::nn::Module {
  explicit TcnBlock(int64_t holes) : reach(2 * holes) {
    const auto conv = [&] {
      return torch::nn::Conv1d(torch::nn::Conv1dOptions(kTcnWidth, kTcnWidth, 3).dilation(holes));
    };
    conv1 = register_module("conv1", conv());
    conv2 = register_module("conv2", conv());
  }
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor y = at::relu(conv1(at::constant_pad_nd(x, {reach, 0})));
    return at::relu(x + conv2(at::constant_pad_nd(y, {reach, 0})));
  }
  int64_t reach;
  torch::nn::Conv1d conv1{nullptr}, conv2{nullptr};
};

struct Tcn : torch::nn::Module {
  Tcn() {
    input = register_module("input", torch::nn::Conv1d(kTcnChannels, kTcnWidth, 1));
    for (const int64_t holes : {1, 2, 4, 8, 16, 32})
      blocks.push_back(register_module("holes" + std::to_string(holes), std::make_shared<TcnBlock>(holes)));
    head = register_module("head", torch::nn::Linear(kTcnWidth, 10));
  }
  at::Tensor forward(const at::Tensor& series) {
    at::Tensor x = input(series);
    for (const auto& block : blocks) x = block->forward(x);
    return head(x.select(2, -1));
  }
  torch::nn::Conv1d input{nullptr};
  std::vector<std::shared_ptr<TcnBlock>> blocks;
  torch::nn::Linear head{nullptr};
};

}  // namespace

SuiteModel make_text_cnn() {
  return one_tensor_model(std::make_shared<TextCnn>(), "ids", id_sample(kTextTokens, kTextVocabulary),
                          label_loss);
}

SuiteModel make_tcn() {
  return one_tensor_model(std::make_shared<Tcn>(), "series", float_sample({kTcnChannels, kTcnSteps}),
                          label_loss);
}

}  // namespace halftone
