// ViT-Ti/16: patches of an image as tokens of a transformer.
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/modules/conv.h>

#include "bench/suite/builders.h"

namespace halftone {
namespace {

constexpr int64_t kVitWidth = 192, kVitHeads = 3, kVitBlocks = 12, kVitPatches = 196;

struct VisionTransformer : torch::nn::Module {
  VisionTransformer() {
    patches =
        register_module("patches", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, kVitWidth, 16).stride(16)));
    first_token = register_parameter("first_token", at::zeros({1, 1, kVitWidth}));
    positions = register_parameter("positions", at::zeros({kVitPatches + 1, kVitWidth}));
    for (int64_t i = 0; i < kVitBlocks; ++i)
      blocks.push_back(register_module("block" + std::to_string(i),
                                       std::make_shared<SuitePreNormBlock>(kVitWidth, kVitHeads, false)));
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({kVitWidth})));
    head = register_module("head", torch::nn::Linear(kVitWidth, 1000));
  }
  at::Tensor forward(const at::Tensor& pixels) {
    at::Tensor x = patches(pixels).flatten(2).transpose(1, 2);
    x = at::cat({first_token.expand({x.size(0), -1, -1}), x}, 1) + positions;
    for (const auto& block : blocks) x = block->forward(x);
    return head(norm(x).select(1, 0));
  }
  torch::nn::Conv2d patches{nullptr};
  at::Tensor first_token, positions;
  std::vector<std::shared_ptr<SuitePreNormBlock>> blocks;
  torch::nn::LayerNorm norm{nullptr};
  torch::nn::Linear head{nullptr};
};

}  // namespace

SuiteModel make_vit() {
  return one_tensor_model(std::make_shared<VisionTransformer>(), "pixels", float_sample({3, 224, 224}),
                          label_loss);
}

}  // namespace halftone
