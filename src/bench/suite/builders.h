// Shared by the files of this folder: one function a model, and the parts that several models are made of.
#pragma once

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include "bench/suite/models.h"

namespace halftone {

SuiteModel make_bert();
SuiteModel make_dlrm();
SuiteModel make_gpt();
SuiteModel make_gru();
SuiteModel make_llama();
SuiteModel make_lstm();
SuiteModel make_mlp();
SuiteModel make_mlp_mixer();
SuiteModel make_mobilenet();
SuiteModel make_resnet50();
SuiteModel make_tcn();
SuiteModel make_text_cnn();
SuiteModel make_tiny_mlp();
SuiteModel make_unet();
SuiteModel make_vae();
SuiteModel make_vit();

/// Two linears with a GELU between them.
struct SuiteFeedForward : torch::nn::Module {
  SuiteFeedForward(int64_t width, int64_t hidden);
  at::Tensor forward(const at::Tensor& x);
  torch::nn::Linear up{nullptr}, down{nullptr};
};

/// Self-attention with one linear for queries, keys and values. `mask`: added to the scores, or undefined.
struct SuiteAttention : torch::nn::Module {
  SuiteAttention(int64_t width, int64_t heads, bool causal = false);
  at::Tensor forward(const at::Tensor& x, const at::Tensor& mask = {});
  torch::nn::Linear qkv{nullptr}, out{nullptr};
  int64_t heads;
  bool causal;
};

/// The norms come before attention and feed-forward, as in GPT-2 and ViT.
struct SuitePreNormBlock : torch::nn::Module {
  SuitePreNormBlock(int64_t width, int64_t heads, bool causal);
  at::Tensor forward(const at::Tensor& x);
  torch::nn::LayerNorm attention_norm{nullptr}, mlp_norm{nullptr};
  std::shared_ptr<SuiteAttention> attention;
  std::shared_ptr<SuiteFeedForward> mlp;
};

/// A module whose forward takes and gives one tensor.
template <typename Model>
SuiteModel one_tensor_model(const std::shared_ptr<Model>& model, std::string input, SampleFunction sample,
                            LossFunction loss) {
  ForwardFunction forward = [model](const std::vector<c10::IValue>& args) -> c10::IValue {
    return model->forward(args.at(0).toTensor());
  };
  return {{}, model, std::move(forward), std::move(sample), std::move(loss), {std::move(input)}};
}

/// One whose forward takes two.
template <typename Model>
SuiteModel two_tensor_model(const std::shared_ptr<Model>& model, std::vector<std::string> inputs,
                            SampleFunction sample, LossFunction loss) {
  ForwardFunction forward = [model](const std::vector<c10::IValue>& args) -> c10::IValue {
    return model->forward(args.at(0).toTensor(), args.at(1).toTensor());
  };
  return {{}, model, std::move(forward), std::move(sample), std::move(loss), std::move(inputs)};
}

/// A call with one tensor of floats: `sizes` without the batch.
SampleFunction float_sample(std::vector<int64_t> sizes);
SampleFunction id_sample(int64_t tokens, int64_t vocabulary);

/// Cross entropy of logits, whose classes are the last dimension, against made-up labels.
at::Tensor label_loss(const c10::IValue& result, const std::vector<c10::IValue>& args);
/// Cross entropy against the next of the ids that are the first argument.
at::Tensor next_token_loss(const c10::IValue& result, const std::vector<c10::IValue>& args);

}  // namespace halftone
