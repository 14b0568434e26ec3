// A decoder as deep as real ones and as narrow as can be: many nodes, little arithmetic.
#pragma once

#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <memory>
#include <vector>

namespace halftone {

constexpr int64_t kWidth = 32, kHeads = 2, kTokens = 4, kWords = 64;

struct RmsNormImpl : torch::nn::Module {
  at::Tensor weight{register_parameter("weight", at::ones({kWidth}))};
  at::Tensor forward(const at::Tensor& x) {
    return x * at::rsqrt(x.pow(2).mean(-1, /*keepdim=*/true) + 1e-5) * weight;
  }
};
TORCH_MODULE(RmsNorm);

inline torch::nn::Linear projection() {
  return torch::nn::Linear(torch::nn::LinearOptions(kWidth, kWidth).bias(false));
}

/// About fifty nodes: norms of plain operators, rotary positions, attention spelt out, a gated MLP,
/// residuals.
struct DecoderLayerImpl : torch::nn::Module {
  RmsNorm before{register_module("before", RmsNorm())}, after{register_module("after", RmsNorm())};
  torch::nn::Linear q{register_module("q", projection())}, k{register_module("k", projection())};
  torch::nn::Linear v{register_module("v", projection())}, o{register_module("o", projection())};
  torch::nn::Linear gate{register_module("gate", projection())}, up{register_module("up", projection())};
  torch::nn::Linear down{register_module("down", projection())};
  bool relu = false;  ///< one activation that other layers do not have

  static at::Tensor heads(const at::Tensor& x) {
    return x.view({1, kTokens, kHeads, kWidth / kHeads}).transpose(1, 2);
  }
  static at::Tensor rotate(const at::Tensor& x, const at::Tensor& cosine, const at::Tensor& sine) {
    const int64_t half = kWidth / kHeads / 2;
    const at::Tensor turned = at::cat({-x.slice(-1, half), x.slice(-1, 0, half)}, -1);
    return x * cosine + turned * sine;
  }
  at::Tensor forward(const at::Tensor& x, const at::Tensor& cosine, const at::Tensor& sine) {
    const at::Tensor normed = before(x);
    const at::Tensor queries = rotate(heads(q(normed)), cosine, sine);
    const at::Tensor keys = rotate(heads(k(normed)), cosine, sine);
    const at::Tensor weights = (queries.matmul(keys.transpose(-1, -2)) * 0.25).softmax(-1);
    const at::Tensor mixed = weights.matmul(heads(v(normed))).transpose(1, 2).reshape({1, kTokens, kWidth});
    at::Tensor sum = x + o(mixed);
    if (relu) sum = sum.relu();
    const at::Tensor second = after(sum);
    return sum + down(at::silu(gate(second)) * up(second));
  }
};
TORCH_MODULE(DecoderLayer);

struct Decoder : torch::nn::Module {
  explicit Decoder(int64_t depth) {
    torch::manual_seed(1);
    words = register_module("words", torch::nn::Embedding(kWords, kWidth));
    layers = register_module("layers", torch::nn::ModuleList());
    for (int64_t i = 0; i < depth; ++i) {
      DecoderLayer layer;
      layer->relu = i == depth / 2;
      list.push_back(layer);
      layers->push_back(layer);
    }
    norm = register_module("norm", RmsNorm());
    cosine = register_buffer("cosine", at::rand({kTokens, kWidth / kHeads}));
    sine = register_buffer("sine", at::rand({kTokens, kWidth / kHeads}));
  }
  at::Tensor forward(const at::Tensor& ids) {
    at::Tensor x = words(ids);
    for (DecoderLayer& layer : list) x = layer(x, cosine, sine);
    return at::linear(norm(x), words->weight);  // the tied head
  }

  torch::nn::Embedding words{nullptr};
  torch::nn::ModuleList layers{nullptr};
  std::vector<DecoderLayer> list;
  RmsNorm norm{nullptr};
  at::Tensor cosine, sine;
};

}  // namespace halftone
