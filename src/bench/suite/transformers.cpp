// Transformers on token ids: an encoder as BERT is one, and a decoder as GPT-2.
#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <torch/nn/modules/embedding.h>

#include "bench/suite/builders.h"
#include "bench/suite/weights.h"

namespace halftone {
namespace {

constexpr int64_t kBertWidth = 384, kBertTokens = 128, kBertLayers = 6, kBertVocabulary = 8192;
constexpr int64_t kGptWidth = 384, kGptTokens = 64, kGptLayers = 6, kGptVocabulary = 8192;

/// The norms come after the sums, as in BERT; queries, keys and values are linears of their own.
struct BertLayer : torch::nn::Module {
  BertLayer() {
    using torch::nn::Linear;
    query = register_module("query", Linear(kBertWidth, kBertWidth));
    key = register_module("key", Linear(kBertWidth, kBertWidth));
    value = register_module("value", Linear(kBertWidth, kBertWidth));
    out = register_module("out", Linear(kBertWidth, kBertWidth));
    const torch::nn::LayerNormOptions norm({kBertWidth});
    attention_norm = register_module("attention_norm", torch::nn::LayerNorm(norm));
    mlp = register_module("mlp", std::make_shared<SuiteFeedForward>(kBertWidth, 4 * kBertWidth));
    mlp_norm = register_module("mlp_norm", torch::nn::LayerNorm(norm));
  }
  at::Tensor forward(const at::Tensor& x, const at::Tensor& mask) {
    const auto by_head = [&](const at::Tensor& t) {
      return t.view({x.size(0), x.size(1), 12, kBertWidth / 12}).transpose(1, 2);
    };
    const at::Tensor mixed = at::scaled_dot_product_attention(by_head(query(x)), by_head(key(x)),
                                                              by_head(value(x)), mask, 0.0, false);
    const at::Tensor joined = mixed.transpose(1, 2).reshape({x.size(0), x.size(1), kBertWidth});
    const at::Tensor y = attention_norm(x + out(joined));
    return mlp_norm(y + mlp->forward(y));
  }
  torch::nn::Linear query{nullptr}, key{nullptr}, value{nullptr}, out{nullptr};
  torch::nn::LayerNorm attention_norm{nullptr}, mlp_norm{nullptr};
  std::shared_ptr<SuiteFeedForward> mlp;
};

struct BertEncoder : torch::nn::Module {
  BertEncoder() {
    words = register_module("words", torch::nn::Embedding(kBertVocabulary, kBertWidth));
    positions = register_module("positions", torch::nn::Embedding(kBertTokens, kBertWidth));
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({kBertWidth})));
    for (int64_t i = 0; i < kBertLayers; ++i)
      layers.push_back(register_module("layer" + std::to_string(i), std::make_shared<BertLayer>()));
    head = register_module("head", torch::nn::Linear(kBertWidth, 16));
  }
  at::Tensor forward(const at::Tensor& ids, const at::Tensor& mask) {
    at::Tensor x = norm(words(ids) + positions->weight);
    const at::Tensor added = (1 - mask.to(at::kFloat)).mul(-1e4).view({ids.size(0), 1, 1, ids.size(1)});
    for (const auto& layer : layers) x = layer->forward(x, added);
    return head(x);
  }
  torch::nn::Embedding words{nullptr}, positions{nullptr};
  torch::nn::LayerNorm norm{nullptr};
  std::vector<std::shared_ptr<BertLayer>> layers;
  torch::nn::Linear head{nullptr};
};

struct GptDecoder : torch::nn::Module {
  GptDecoder() {
    words = register_module("words", torch::nn::Embedding(kGptVocabulary, kGptWidth));
    positions = register_module("positions", torch::nn::Embedding(kGptTokens, kGptWidth));
    for (int64_t i = 0; i < kGptLayers; ++i)
      blocks.push_back(register_module("block" + std::to_string(i),
                                       std::make_shared<SuitePreNormBlock>(kGptWidth, 6, /*causal=*/true)));
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({kGptWidth})));
    head = register_module(
        "head", torch::nn::Linear(torch::nn::LinearOptions(kGptWidth, kGptVocabulary).bias(false)));
  }
  at::Tensor forward(const at::Tensor& ids) {
    at::Tensor x = words(ids) + positions->weight;
    for (const auto& block : blocks) x = block->forward(x);
    return head(norm(x));
  }
  torch::nn::Embedding words{nullptr}, positions{nullptr};
  std::vector<std::shared_ptr<SuitePreNormBlock>> blocks;
  torch::nn::LayerNorm norm{nullptr};
  torch::nn::Linear head{nullptr};
};

}  // namespace

SuiteModel make_bert() {
  return two_tensor_model(
      std::make_shared<BertEncoder>(), {"ids", "mask"},
      [](int64_t batch, uint64_t seed) -> Sample {
        at::Tensor mask = at::ones({batch, kBertTokens}, at::kLong);
        mask.slice(1, kBertTokens - 16).zero_();  // texts end before the row does
        return {{drawn_ids({batch, kBertTokens}, kBertVocabulary, seed), mask}, {}};
      },
      label_loss);
}

SuiteModel make_gpt() {
  return one_tensor_model(std::make_shared<GptDecoder>(), "ids", id_sample(kGptTokens, kGptVocabulary),
                          next_token_loss);
}

}  // namespace halftone
