// Mixer-S/16: patches mix their tokens and their channels in turn, by perceptrons alone.
#include <torch/nn/modules/conv.h>

#include "bench/suite/builders.h"

namespace halftone {
namespace {

constexpr int64_t kMixerWidth = 512, kMixerTokens = 196, kMixerBlocks = 8;

struct MixerBlock : torch::nn::Module {
  MixerBlock() {
    const torch::nn::LayerNormOptions norm({kMixerWidth});
    token_norm = register_module("token_norm", torch::nn::LayerNorm(norm));
    token_mlp = register_module("token_mlp", std::make_shared<SuiteFeedForward>(kMixerTokens, 256));
    channel_norm = register_module("channel_norm", torch::nn::LayerNorm(norm));
    channel_mlp = register_module("channel_mlp", std::make_shared<SuiteFeedForward>(kMixerWidth, 2048));
  }
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor y = x + token_mlp->forward(token_norm(x).transpose(1, 2)).transpose(1, 2);
    return y + channel_mlp->forward(channel_norm(y));
  }
  torch::nn::LayerNorm token_norm{nullptr}, channel_norm{nullptr};
  std::shared_ptr<SuiteFeedForward> token_mlp, channel_mlp;
};

struct MlpMixer : torch::nn::Module {
  MlpMixer() {
    patches = register_module("patches",
                              torch::nn::Conv2d(torch::nn::Conv2dOptions(3, kMixerWidth, 16).stride(16)));
    for (int64_t i = 0; i < kMixerBlocks; ++i)
      blocks.push_back(register_module("block" + std::to_string(i), std::make_shared<MixerBlock>()));
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({kMixerWidth})));
    head = register_module("head", torch::nn::Linear(kMixerWidth, 1000));
  }
  at::Tensor forward(const at::Tensor& pixels) {
    at::Tensor x = patches(pixels).flatten(2).transpose(1, 2);
    for (const auto& block : blocks) x = block->forward(x);
    return head(norm(x).mean(1));
  }
  torch::nn::Conv2d patches{nullptr};
  std::vector<std::shared_ptr<MixerBlock>> blocks;
  torch::nn::LayerNorm norm{nullptr};
  torch::nn::Linear head{nullptr};
};

}  // namespace

SuiteModel make_mlp_mixer() {
  return one_tensor_model(std::make_shared<MlpMixer>(), "pixels", float_sample({3, 224, 224}), label_loss);
}

}  // namespace halftone
