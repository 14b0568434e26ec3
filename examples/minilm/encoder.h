// all-MiniLM-L6-v2 (and any BERT encoder of its kind) as a C++ torch::nn::Module. Modules and parameters
// carry the names of the checkpoint, so that qualified names are the keys of model.safetensors.
#pragma once

#include <torch/nn/cloneable.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <string>

namespace minilm {

/// What config.json says of the architecture; the defaults are MiniLM's.
struct EncoderConfig {
  int64_t vocab_size = 30522;
  int64_t hidden_size = 384;
  int64_t num_hidden_layers = 6;
  int64_t num_attention_heads = 12;
  int64_t intermediate_size = 1536;
  int64_t max_position_embeddings = 512;
  int64_t type_vocab_size = 2;
  double layer_norm_eps = 1e-12;

  /// Throws halftone::Error (kNotFound, kCorruptFile, kUnsupported) that names the file and the field.
  static EncoderConfig from_file(const std::string& path);
};

/// Word, position and token-type vectors, added and normalized.
class EmbeddingsImpl : public torch::nn::Cloneable<EmbeddingsImpl> {
 public:
  explicit EmbeddingsImpl(const EncoderConfig& config) : config_(config) { reset(); }
  void reset() override;
  at::Tensor forward(const at::Tensor& ids);

  torch::nn::Embedding word_embeddings{nullptr}, position_embeddings{nullptr}, token_type_embeddings{nullptr};
  torch::nn::LayerNorm norm{nullptr};
  at::Tensor position_ids;  ///< 0, 1, …: (1, max_position_embeddings)

 private:
  EncoderConfig config_;
};
TORCH_MODULE(Embeddings);

/// softmax(Q Kᵀ / √d) V in each head; `keep` (batch, 1, 1, tokens) is false for keys that are padding.
class SelfAttentionImpl : public torch::nn::Cloneable<SelfAttentionImpl> {
 public:
  explicit SelfAttentionImpl(const EncoderConfig& config) : config_(config) { reset(); }
  void reset() override;
  at::Tensor forward(const at::Tensor& x, const at::Tensor& keep);

  torch::nn::Linear query{nullptr}, key{nullptr}, value{nullptr};

 private:
  EncoderConfig config_;
};
TORCH_MODULE(SelfAttention);

/// norm(dense(x) + residual): the end of both halves of a layer.
class AddAndNormImpl : public torch::nn::Cloneable<AddAndNormImpl> {
 public:
  AddAndNormImpl(const EncoderConfig& config, int64_t in_features)
      : config_(config), in_features_(in_features) {
    reset();
  }
  void reset() override;
  at::Tensor forward(const at::Tensor& x, const at::Tensor& residual);

  torch::nn::Linear dense{nullptr};
  torch::nn::LayerNorm norm{nullptr};

 private:
  EncoderConfig config_;
  int64_t in_features_;
};
TORCH_MODULE(AddAndNorm);

class AttentionImpl : public torch::nn::Cloneable<AttentionImpl> {
 public:
  explicit AttentionImpl(const EncoderConfig& config) : config_(config) { reset(); }
  void reset() override;
  at::Tensor forward(const at::Tensor& x, const at::Tensor& keep);

  SelfAttention self{nullptr};
  AddAndNorm output{nullptr};

 private:
  EncoderConfig config_;
};
TORCH_MODULE(Attention);

/// The wide half of the feed-forward part: gelu(dense(x)), with the exact (erf) GELU.
class IntermediateImpl : public torch::nn::Cloneable<IntermediateImpl> {
 public:
  explicit IntermediateImpl(const EncoderConfig& config) : config_(config) { reset(); }
  void reset() override;
  at::Tensor forward(const at::Tensor& x);

  torch::nn::Linear dense{nullptr};

 private:
  EncoderConfig config_;
};
TORCH_MODULE(Intermediate);

class LayerImpl : public torch::nn::Cloneable<LayerImpl> {
 public:
  explicit LayerImpl(const EncoderConfig& config) : config_(config) { reset(); }
  void reset() override;
  at::Tensor forward(const at::Tensor& x, const at::Tensor& keep);

  Attention attention{nullptr};
  Intermediate intermediate{nullptr};
  AddAndNorm output{nullptr};

 private:
  EncoderConfig config_;
};
TORCH_MODULE(Layer);

class LayerStackImpl : public torch::nn::Cloneable<LayerStackImpl> {
 public:
  explicit LayerStackImpl(const EncoderConfig& config) : config_(config) { reset(); }
  void reset() override;
  at::Tensor forward(at::Tensor x, const at::Tensor& keep);

  torch::nn::ModuleList layer{nullptr};

 private:
  EncoderConfig config_;
};
TORCH_MODULE(LayerStack);

class EncoderImpl : public torch::nn::Cloneable<EncoderImpl> {
 public:
  explicit EncoderImpl(const EncoderConfig& config) : config_(config) { reset(); }
  void reset() override;
  /// ids and mask: int64 (batch, tokens), mask 1 for a token and 0 for padding. Result: (batch, tokens,
  /// hidden_size).
  at::Tensor forward(const at::Tensor& ids, const at::Tensor& mask);

  const EncoderConfig& config() const { return config_; }

  Embeddings embeddings{nullptr};
  LayerStack encoder{nullptr};

 private:
  EncoderConfig config_;
};
TORCH_MODULE(Encoder);

/// The encoder in evaluation mode with the weights of a folder that holds config.json and model.safetensors.
/// Its parameters share the mapped file. Throws halftone::Error that lists every parameter that is missing,
/// unknown or of another shape.
Encoder load_encoder(const std::string& folder);

}  // namespace minilm
