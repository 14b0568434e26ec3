// A decoder as Llama is one: RMS norms, rotary positions, grouped queries, gated feed-forward.
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>
#include <torch/nn/modules/embedding.h>

#include "bench/suite/builders.h"

namespace halftone {
namespace {

constexpr int64_t kLlamaWidth = 512, kLlamaHeads = 8, kLlamaKeyHeads = 2, kLlamaHeadWidth = 64;
constexpr int64_t kLlamaHidden = 1408, kLlamaLayers = 4, kLlamaTokens = 32, kLlamaVocabulary = 8192;

struct LlamaNorm : torch::nn::Module {
  LlamaNorm() { weight = register_parameter("weight", at::ones({kLlamaWidth})); }
  at::Tensor forward(const at::Tensor& x) {
    return x * at::rsqrt(x.pow(2).mean(-1, /*keepdim=*/true) + 1e-5) * weight;
  }
  at::Tensor weight;
};

torch::nn::Linear llama_linear(int64_t inputs, int64_t outputs) {
  return torch::nn::Linear(torch::nn::LinearOptions(inputs, outputs).bias(false));
}

/// Turns each pair of a head's halves by an angle that grows with the position.
at::Tensor llama_rotated(const at::Tensor& x, const at::Tensor& cosines, const at::Tensor& sines) {
  const auto halves = x.chunk(2, -1);
  return x * cosines + at::cat({-halves[1], halves[0]}, -1) * sines;
}

struct LlamaBlock : torch::nn::Module {
  LlamaBlock() {
    attention_norm = register_module("attention_norm", std::make_shared<LlamaNorm>());
    query = register_module("query", llama_linear(kLlamaWidth, kLlamaWidth));
    key = register_module("key", llama_linear(kLlamaWidth, kLlamaKeyHeads * kLlamaHeadWidth));
    value = register_module("value", llama_linear(kLlamaWidth, kLlamaKeyHeads * kLlamaHeadWidth));
    out = register_module("out", llama_linear(kLlamaWidth, kLlamaWidth));
    mlp_norm = register_module("mlp_norm", std::make_shared<LlamaNorm>());
    gate = register_module("gate", llama_linear(kLlamaWidth, kLlamaHidden));
    up = register_module("up", llama_linear(kLlamaWidth, kLlamaHidden));
    down = register_module("down", llama_linear(kLlamaHidden, kLlamaWidth));
  }
  at::Tensor forward(const at::Tensor& x, const at::Tensor& cosines, const at::Tensor& sines) {
    const int64_t batch = x.size(0), tokens = x.size(1);
    const auto by_head = [&](const at::Tensor& t, int64_t heads) {
      return t.view({batch, tokens, heads, kLlamaHeadWidth}).transpose(1, 2);
    };
    const at::Tensor normed = attention_norm->forward(x);
    const at::Tensor q = llama_rotated(by_head(query(normed), kLlamaHeads), cosines, sines);
    const at::Tensor k = llama_rotated(by_head(key(normed), kLlamaKeyHeads), cosines, sines);
    const at::Tensor v = by_head(value(normed), kLlamaKeyHeads);
    constexpr int64_t kShare = kLlamaHeads / kLlamaKeyHeads;
    const at::Tensor mixed = at::scaled_dot_product_attention(
        q, k.repeat_interleave(kShare, 1), v.repeat_interleave(kShare, 1), {}, 0.0, /*is_causal=*/true);
    const at::Tensor y = x + out(mixed.transpose(1, 2).reshape({batch, tokens, kLlamaWidth}));
    const at::Tensor z = mlp_norm->forward(y);
    return y + down(at::silu(gate(z)) * up(z));
  }
  std::shared_ptr<LlamaNorm> attention_norm, mlp_norm;
  torch::nn::Linear query{nullptr}, key{nullptr}, value{nullptr}, out{nullptr};
  torch::nn::Linear gate{nullptr}, up{nullptr}, down{nullptr};
};

struct LlamaDecoder : torch::nn::Module {
  LlamaDecoder() {
    words = register_module("words", torch::nn::Embedding(kLlamaVocabulary, kLlamaWidth));
    for (int64_t i = 0; i < kLlamaLayers; ++i)
      blocks.push_back(register_module("block" + std::to_string(i), std::make_shared<LlamaBlock>()));
    norm = register_module("norm", std::make_shared<LlamaNorm>());
    head = register_module("head", llama_linear(kLlamaWidth, kLlamaVocabulary));
    const at::Tensor steps = at::arange(0, kLlamaHeadWidth, 2, at::kFloat) / kLlamaHeadWidth;
    const at::Tensor angles =
        at::outer(at::arange(kLlamaTokens, at::kFloat), at::pow(10000.0, steps).reciprocal());
    const at::Tensor both = at::cat({angles, angles}, -1);
    cosines = register_buffer("cosines", both.cos());
    sines = register_buffer("sines", both.sin());
  }
  at::Tensor forward(const at::Tensor& ids) {
    at::Tensor x = words(ids);
    for (const auto& block : blocks) x = block->forward(x, cosines, sines);
    return head(norm->forward(x));
  }
  torch::nn::Embedding words{nullptr};
  std::vector<std::shared_ptr<LlamaBlock>> blocks;
  std::shared_ptr<LlamaNorm> norm;
  torch::nn::Linear head{nullptr};
  at::Tensor cosines, sines;
};

}  // namespace

SuiteModel make_llama() {
  return one_tensor_model(std::make_shared<LlamaDecoder>(), "ids", id_sample(kLlamaTokens, kLlamaVocabulary),
                          next_token_loss);
}

}  // namespace halftone
