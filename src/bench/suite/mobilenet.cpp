// MobileNetV2 at 160 x 160: inverted residuals around depthwise convolutions.
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/hardtanh.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>

#include "bench/suite/builders.h"

namespace halftone {
namespace {

at::Tensor mobilenet_relu6(const at::Tensor& x) {
  return at::hardtanh(x, 0, 6);
}

torch::nn::Conv2d mobilenet_conv(int64_t inputs, int64_t outputs, int64_t kernel, int64_t stride,
                                 int64_t groups) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(inputs, outputs, kernel)
                               .stride(stride)
                               .padding(kernel / 2)
                               .groups(groups)
                               .bias(false));
}

struct InvertedResidual : torch::nn::Module {
  InvertedResidual(int64_t inputs, int64_t outputs, int64_t stride, int64_t growth)
      : adds(stride == 1 && inputs == outputs) {
    using torch::nn::BatchNorm2d;
    const int64_t inner = inputs * growth;
    if (growth != 1) {
      expand = register_module("expand", mobilenet_conv(inputs, inner, 1, 1, 1));
      expand_norm = register_module("expand_norm", BatchNorm2d(inner));
    }
    depthwise = register_module("depthwise", mobilenet_conv(inner, inner, 3, stride, inner));
    depthwise_norm = register_module("depthwise_norm", BatchNorm2d(inner));
    project = register_module("project", mobilenet_conv(inner, outputs, 1, 1, 1));
    project_norm = register_module(adds ? "residual_norm" : "project_norm", BatchNorm2d(outputs));
  }
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor wide = expand.is_empty() ? x : mobilenet_relu6(expand_norm(expand(x)));
    const at::Tensor y = project_norm(project(mobilenet_relu6(depthwise_norm(depthwise(wide)))));
    return adds ? x + y : y;
  }
  bool adds;
  torch::nn::Conv2d expand{nullptr}, depthwise{nullptr}, project{nullptr};
  torch::nn::BatchNorm2d expand_norm{nullptr}, depthwise_norm{nullptr}, project_norm{nullptr};
};

struct MobileNet : torch::nn::Module {
  MobileNet() {
    stem = register_module("stem", mobilenet_conv(3, 32, 3, 2, 1));
    stem_norm = register_module("stem_norm", torch::nn::BatchNorm2d(32));
    struct Stage {
      int64_t growth, outputs, depth, stride;
    };
    int64_t inputs = 32;
    for (const Stage& stage : {Stage{1, 16, 1, 1}, Stage{6, 24, 2, 2}, Stage{6, 32, 3, 2}, Stage{6, 64, 4, 2},
                               Stage{6, 96, 3, 1}, Stage{6, 160, 3, 2}, Stage{6, 320, 1, 1}}) {
      for (int64_t i = 0; i < stage.depth; ++i) {
        const std::string name = "block" + std::to_string(blocks.size());
        blocks.push_back(
            register_module(name, std::make_shared<InvertedResidual>(
                                      inputs, stage.outputs, i == 0 ? stage.stride : 1, stage.growth)));
        inputs = stage.outputs;
      }
    }
    last = register_module("last", mobilenet_conv(inputs, 1280, 1, 1, 1));
    last_norm = register_module("last_norm", torch::nn::BatchNorm2d(1280));
    head = register_module("head", torch::nn::Linear(1280, 1000));
  }
  at::Tensor forward(const at::Tensor& pixels) {
    at::Tensor x = mobilenet_relu6(stem_norm(stem(pixels)));
    for (const auto& block : blocks) x = block->forward(x);
    x = mobilenet_relu6(last_norm(last(x)));
    return head(at::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
  }
  torch::nn::Conv2d stem{nullptr}, last{nullptr};
  torch::nn::BatchNorm2d stem_norm{nullptr}, last_norm{nullptr};
  std::vector<std::shared_ptr<InvertedResidual>> blocks;
  torch::nn::Linear head{nullptr};
};

}  // namespace

SuiteModel make_mobilenet() {
  return one_tensor_model(std::make_shared<MobileNet>(), "pixels", float_sample({3, 160, 160}), label_loss);
}

}  // namespace halftone
