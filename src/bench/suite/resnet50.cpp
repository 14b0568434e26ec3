// ResNet-50: bottleneck blocks of 3, 4, 6 and 3, strides in the 3 x 3 convolutions.
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>

#include "bench/suite/builders.h"

namespace halftone {
namespace {

torch::nn::Conv2d resnet_conv(int64_t inputs, int64_t outputs, int64_t kernel, int64_t stride = 1) {
  return torch::nn::Conv2d(
      torch::nn::Conv2dOptions(inputs, outputs, kernel).stride(stride).padding(kernel / 2).bias(false));
}

struct Bottleneck : torch::nn::Module {
  Bottleneck(int64_t inputs, int64_t width, int64_t stride) {
    using torch::nn::BatchNorm2d;
    conv1 = register_module("conv1", resnet_conv(inputs, width, 1));
    norm1 = register_module("norm1", BatchNorm2d(width));
    conv2 = register_module("conv2", resnet_conv(width, width, 3, stride));
    norm2 = register_module("norm2", BatchNorm2d(width));
    conv3 = register_module("conv3", resnet_conv(width, 4 * width, 1));
    residual_norm = register_module("residual_norm", BatchNorm2d(4 * width));
    if (stride == 1 && inputs == 4 * width) return;
    short_conv = register_module("short_conv", resnet_conv(inputs, 4 * width, 1, stride));
    short_norm = register_module("short_norm", BatchNorm2d(4 * width));
  }
  at::Tensor forward(const at::Tensor& x) {
    at::Tensor y = at::relu(norm1(conv1(x)));
    y = at::relu(norm2(conv2(y)));
    y = residual_norm(conv3(y));
    return at::relu(y + (short_conv.is_empty() ? x : short_norm(short_conv(x))));
  }
  torch::nn::Conv2d conv1{nullptr}, conv2{nullptr}, conv3{nullptr}, short_conv{nullptr};
  torch::nn::BatchNorm2d norm1{nullptr}, norm2{nullptr}, residual_norm{nullptr}, short_norm{nullptr};
};

struct ResNet50 : torch::nn::Module {
  ResNet50() {
    stem = register_module("stem", resnet_conv(3, 64, 7, 2));
    stem_norm = register_module("stem_norm", torch::nn::BatchNorm2d(64));
    int64_t inputs = 64, width = 64, stage = 0;
    for (const int64_t depth : {3, 4, 6, 3}) {
      for (int64_t i = 0; i < depth; ++i) {
        const int64_t stride = stage > 0 && i == 0 ? 2 : 1;
        const std::string name = "stage" + std::to_string(stage + 1) + "_" + std::to_string(i);
        blocks.push_back(register_module(name, std::make_shared<Bottleneck>(inputs, width, stride)));
        inputs = 4 * width;
      }
      width *= 2;
      ++stage;
    }
    head = register_module("head", torch::nn::Linear(inputs, 1000));
  }
  at::Tensor forward(const at::Tensor& pixels) {
    at::Tensor x = at::max_pool2d(at::relu(stem_norm(stem(pixels))), 3, 2, 1);
    for (const auto& block : blocks) x = block->forward(x);
    return head(at::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
  }
  torch::nn::Conv2d stem{nullptr};
  torch::nn::BatchNorm2d stem_norm{nullptr};
  std::vector<std::shared_ptr<Bottleneck>> blocks;
  torch::nn::Linear head{nullptr};
};

}  // namespace

SuiteModel make_resnet50() {
  return one_tensor_model(std::make_shared<ResNet50>(), "pixels", float_sample({3, 224, 224}), label_loss);
}

}  // namespace halftone
