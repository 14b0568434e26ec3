#include "bench/suite/builders.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include "bench/suite/weights.h"

namespace halftone {

using torch::nn::LayerNorm;
using torch::nn::LayerNormOptions;
using torch::nn::Linear;

SuiteFeedForward::SuiteFeedForward(int64_t width, int64_t hidden) {
  up = register_module("up", Linear(width, hidden));
  down = register_module("down", Linear(hidden, width));
}

at::Tensor SuiteFeedForward::forward(const at::Tensor& x) {
  return down(at::gelu(up(x)));
}

SuiteAttention::SuiteAttention(int64_t width, int64_t heads, bool causal) : heads(heads), causal(causal) {
  qkv = register_module("qkv", Linear(width, 3 * width));
  out = register_module("out", Linear(width, width));
}

at::Tensor SuiteAttention::forward(const at::Tensor& x, const at::Tensor& mask) {
  const int64_t batch = x.size(0), tokens = x.size(1), width = x.size(2);
  const auto parts = qkv(x).view({batch, tokens, 3, heads, width / heads}).permute({2, 0, 3, 1, 4}).unbind(0);
  const std::optional<at::Tensor> added = mask.defined() ? std::optional(mask) : std::nullopt;
  const at::Tensor mixed = at::scaled_dot_product_attention(parts[0], parts[1], parts[2], added, 0.0, causal);
  return out(mixed.transpose(1, 2).reshape({batch, tokens, width}));
}

SuitePreNormBlock::SuitePreNormBlock(int64_t width, int64_t heads, bool causal) {
  attention_norm = register_module("attention_norm", LayerNorm(LayerNormOptions({width})));
  attention = register_module("attention", std::make_shared<SuiteAttention>(width, heads, causal));
  mlp_norm = register_module("mlp_norm", LayerNorm(LayerNormOptions({width})));
  mlp = register_module("mlp", std::make_shared<SuiteFeedForward>(width, 4 * width));
}

at::Tensor SuitePreNormBlock::forward(const at::Tensor& x) {
  const at::Tensor y = x + attention->forward(attention_norm(x));
  return y + mlp->forward(mlp_norm(y));
}

SampleFunction float_sample(std::vector<int64_t> sizes) {
  return [sizes = std::move(sizes)](int64_t batch, uint64_t seed) -> Sample {
    std::vector<int64_t> all = {batch};
    all.insert(all.end(), sizes.begin(), sizes.end());
    return {{drawn_floats(all, seed)}, {}};
  };
}

SampleFunction id_sample(int64_t tokens, int64_t vocabulary) {
  return [=](int64_t batch, uint64_t seed) -> Sample {
    return {{drawn_ids({batch, tokens}, vocabulary, seed)}, {}};
  };
}

at::Tensor label_loss(const c10::IValue& result, const std::vector<c10::IValue>&) {
  const at::Tensor logits = result.toTensor();
  const int64_t classes = logits.size(-1), rows = logits.numel() / classes;
  const at::Tensor labels = at::arange(rows, at::kLong).mul(7).add(3).remainder(classes);
  return at::cross_entropy_loss(logits.reshape({rows, classes}), labels);
}

at::Tensor next_token_loss(const c10::IValue& result, const std::vector<c10::IValue>& args) {
  const at::Tensor logits = result.toTensor().slice(1, 0, -1);
  const at::Tensor next = args.at(0).toTensor().slice(1, 1);
  return at::cross_entropy_loss(logits.reshape({-1, logits.size(-1)}), next.reshape({-1}));
}

}  // namespace halftone
