#include "minilm/encoder.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/zeros_like.h>

namespace minilm {
namespace {

torch::nn::LayerNorm layer_norm(const EncoderConfig& config) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({config.hidden_size}).eps(config.layer_norm_eps));
}

}  // namespace

void EmbeddingsImpl::reset() {
  const int64_t width = config_.hidden_size;
  word_embeddings = register_module("word_embeddings", torch::nn::Embedding(config_.vocab_size, width));
  position_embeddings =
      register_module("position_embeddings", torch::nn::Embedding(config_.max_position_embeddings, width));
  token_type_embeddings =
      register_module("token_type_embeddings", torch::nn::Embedding(config_.type_vocab_size, width));
  norm = register_module("LayerNorm", layer_norm(config_));
  position_ids = register_buffer("position_ids", at::arange(config_.max_position_embeddings).unsqueeze(0));
}

at::Tensor EmbeddingsImpl::forward(const at::Tensor& ids) {
  // One segment only: every token is of type 0.
  const at::Tensor x = word_embeddings(ids) + token_type_embeddings(at::zeros_like(ids));
  return norm(x + position_embeddings(position_ids.slice(/*dim=*/1, 0, ids.size(1))));
}

void SelfAttentionImpl::reset() {
  const int64_t width = config_.hidden_size;
  query = register_module("query", torch::nn::Linear(width, width));
  key = register_module("key", torch::nn::Linear(width, width));
  value = register_module("value", torch::nn::Linear(width, width));
}

at::Tensor SelfAttentionImpl::forward(const at::Tensor& x, const at::Tensor& keep) {
  // (batch, tokens, width) → (batch, heads, tokens, width / heads)
  const auto split = [&](const at::Tensor& y) {
    return y.unflatten(-1, {config_.num_attention_heads, -1}).transpose(1, 2);
  };
  const at::Tensor y =
      at::scaled_dot_product_attention(split(query(x)), split(key(x)), split(value(x)), keep);
  return y.transpose(1, 2).flatten(2);
}

void AddAndNormImpl::reset() {
  dense = register_module("dense", torch::nn::Linear(in_features_, config_.hidden_size));
  norm = register_module("LayerNorm", layer_norm(config_));
}

at::Tensor AddAndNormImpl::forward(const at::Tensor& x, const at::Tensor& residual) {
  return norm(dense(x) + residual);
}

void AttentionImpl::reset() {
  self = register_module("self", SelfAttention(config_));
  output = register_module("output", AddAndNorm(config_, config_.hidden_size));
}

at::Tensor AttentionImpl::forward(const at::Tensor& x, const at::Tensor& keep) {
  return output(self(x, keep), x);
}

void IntermediateImpl::reset() {
  dense = register_module("dense", torch::nn::Linear(config_.hidden_size, config_.intermediate_size));
}

at::Tensor IntermediateImpl::forward(const at::Tensor& x) {
  return at::gelu(dense(x));
}

void LayerImpl::reset() {
  attention = register_module("attention", Attention(config_));
  intermediate = register_module("intermediate", Intermediate(config_));
  output = register_module("output", AddAndNorm(config_, config_.intermediate_size));
}

at::Tensor LayerImpl::forward(const at::Tensor& x, const at::Tensor& keep) {
  const at::Tensor attended = attention(x, keep);
  return output(intermediate(attended), attended);
}

void LayerStackImpl::reset() {
  layer = register_module("layer", torch::nn::ModuleList());
  for (int64_t i = 0; i < config_.num_hidden_layers; ++i) layer->push_back(Layer(config_));
}

at::Tensor LayerStackImpl::forward(at::Tensor x, const at::Tensor& keep) {
  for (const std::shared_ptr<torch::nn::Module>& module : *layer) x = module->as<Layer>()->forward(x, keep);
  return x;
}

void EncoderImpl::reset() {
  embeddings = register_module("embeddings", Embeddings(config_));
  encoder = register_module("encoder", LayerStack(config_));
}

at::Tensor EncoderImpl::forward(const at::Tensor& ids, const at::Tensor& mask) {
  const at::Tensor keep = mask.to(at::kBool).unsqueeze(1).unsqueeze(1);
  return encoder(embeddings(ids), keep);
}

}  // namespace minilm
