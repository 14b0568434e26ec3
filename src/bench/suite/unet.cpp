// U-Net on 96 x 96 images: down three times, up again, with what was seen on the way down.
#include <ATen/ops/cat.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>

#include "bench/suite/builders.h"

namespace halftone {
namespace {

struct UnetStage : torch::nn::Module {
  UnetStage(int64_t inputs, int64_t outputs) {
    const auto conv = [](int64_t in, int64_t out) {
      return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 3).padding(1).bias(false));
    };
    conv1 = register_module("conv1", conv(inputs, outputs));
    norm1 = register_module("norm1", torch::nn::BatchNorm2d(outputs));
    conv2 = register_module("conv2", conv(outputs, outputs));
    norm2 = register_module("norm2", torch::nn::BatchNorm2d(outputs));
  }
  at::Tensor forward(const at::Tensor& x) { return at::relu(norm2(conv2(at::relu(norm1(conv1(x)))))); }
  torch::nn::Conv2d conv1{nullptr}, conv2{nullptr};
  torch::nn::BatchNorm2d norm1{nullptr}, norm2{nullptr};
};

struct Unet : torch::nn::Module {
  Unet() {
    int64_t inputs = 3;
    for (const int64_t width : {32, 64, 128}) {
      down.push_back(
          register_module("down" + std::to_string(width), std::make_shared<UnetStage>(inputs, width)));
      inputs = width;
    }
    middle = register_module("middle", std::make_shared<UnetStage>(128, 256));
    for (const int64_t width : {128, 64, 32}) {
      const std::string size = std::to_string(width);
      wider.push_back(register_module(
          "wider" + size,
          torch::nn::ConvTranspose2d(torch::nn::ConvTranspose2dOptions(2 * width, width, 2).stride(2))));
      up.push_back(register_module("up" + size, std::make_shared<UnetStage>(2 * width, width)));
    }
    head = register_module("head", torch::nn::Conv2d(32, 2, 1));
  }
  at::Tensor forward(const at::Tensor& pixels) {
    std::vector<at::Tensor> seen;
    at::Tensor x = pixels;
    for (const auto& stage : down) {
      seen.push_back(stage->forward(x));
      x = at::max_pool2d(seen.back(), 2);
    }
    x = middle->forward(x);
    for (size_t i = 0; i < up.size(); ++i) {
      x = at::cat({wider[i](x), seen[seen.size() - 1 - i]}, 1);
      x = up[i]->forward(x);
    }
    return head(x);
  }
  std::vector<std::shared_ptr<UnetStage>> down, up;
  std::shared_ptr<UnetStage> middle;
  std::vector<torch::nn::ConvTranspose2d> wider;
  torch::nn::Conv2d head{nullptr};
};

}  // namespace

SuiteModel make_unet() {
  return one_tensor_model(
      std::make_shared<Unet>(), "pixels", float_sample({3, 96, 96}),
      [](const c10::IValue& result, const std::vector<c10::IValue>& args) {
        return label_loss(result.toTensor().permute({0, 2, 3, 1}), args);  // a class for each pixel
      });
}

}  // namespace halftone
