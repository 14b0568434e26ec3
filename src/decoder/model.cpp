#include "decoder/model.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "halftone/capture/capture_module.h"

namespace halftone {

namespace {

/// A module that is one weight, so that it gets a name of its own.
struct Weight : torch::nn::Module {
  explicit Weight(BiasedWeight given) : weight(std::move(given)) {
    register_parameter("weight", weight.weight, false);
    if (weight.bias.defined()) register_parameter("bias", weight.bias, false);
  }
  BiasedWeight weight;
};

/// Undefined weights stay so.
BiasedWeight register_weight(torch::nn::Module& parent, const std::string& name, BiasedWeight weight) {
  if (!weight.weight.defined()) return weight;
  return parent.register_module(name, std::make_shared<Weight>(std::move(weight)))->weight;
}
at::Tensor register_table(torch::nn::Module& parent, const std::string& name, at::Tensor table) {
  return register_weight(parent, name, {std::move(table), {}}).weight;
}

at::Tensor product(const at::Tensor& x, const BiasedWeight& linear) {
  return linear.bias.defined() ? at::linear(x, linear.weight, linear.bias) : at::linear(x, linear.weight);
}

/// Over as many of the last numbers as there are weights; without weights x itself.
at::Tensor normed(const at::Tensor& x, const BiasedWeight& norm, const DecoderConfig& config) {
  if (!norm.weight.defined()) return x;
  if (config.layer_norms)
    return at::layer_norm(x, norm.weight.sizes(), norm.weight, norm.bias, config.norm_eps);
  return at::rms_norm(x, norm.weight.sizes(), norm.weight, config.norm_eps);
}

/// The angle of position p and pair i of n is p · base^(-i / n) / divisor; both halves of a head have the same angles. Pairs
/// that do not turn have the angle 0.
std::pair<at::Tensor, at::Tensor> rotary_tables(const DecoderConfig& config, const Rotary& rotary,
                                                int64_t context) {
  const int64_t turned = config.turned_width(), rest = config.head_width - turned;
  const at::Tensor exponents = at::arange(0, turned, 2, at::kDouble) / static_cast<double>(turned);
  at::Tensor speeds = at::pow(rotary.base, exponents.neg());
  if (!rotary.divisors.empty()) speeds = speeds / at::tensor(rotary.divisors, at::kDouble);
  if (rest > 0) speeds = at::cat({speeds, at::zeros({rest / 2}, at::kDouble)});
  const at::Tensor angles = at::outer(at::arange(context, at::kDouble), speeds);
  const at::Tensor cosine = at::cos(angles), sine = at::sin(angles);
  return {at::cat({cosine, cosine}, 1).to(at::kFloat), at::cat({sine.neg(), sine}, 1).to(at::kFloat)};
}

/// x [1, t, heads, d] turned by its position: (a, b) becomes (a · cos - b · sin, b · cos + a · sin), where a and b are
/// the halves of a head. The sign of the first half stands in the table of sines.
at::Tensor rotated(const at::Tensor& x, const at::Tensor& cosines, const at::Tensor& sines) {
  const int64_t half = x.size(3) / 2;
  const at::Tensor swapped = at::cat({x.narrow(3, half, half), x.narrow(3, 0, half)}, 3);
  return x * cosines + swapped * sines;
}

at::Tensor activated(const at::Tensor& x, DecoderActivation activation) {
  if (activation == DecoderActivation::kSilu) return at::silu(x);
  return at::gelu(x, activation == DecoderActivation::kGeluTanh ? "tanh" : "none");
}

/// softmax(cap · tanh(q · kᵀ · scale / cap)) · v over what `keep` says; the heads of k and v are shared by groups of q's.
at::Tensor capped_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const at::Tensor& keep, double scale, double cap) {
  const int64_t t = q.size(2), d = q.size(3), kv_heads = k.size(1), group = q.size(1) / kv_heads;
  const at::Tensor grouped = q.reshape({1, kv_heads, group * t, d});
  const at::Tensor products =
      at::matmul(grouped, k.transpose(2, 3)).view({1, kv_heads, group, t, keep.size(1)});
  const at::Tensor scores = at::tanh(products * (scale / cap)) * cap;
  const at::Tensor shares =
      at::softmax(scores.masked_fill(keep.logical_not(), -std::numeric_limits<double>::infinity()), -1);
  return at::matmul(shares.view({1, kv_heads, group * t, keep.size(1)}), v).view({1, q.size(1), t, d});
}

}  // namespace

class DecoderModel::Layer : public torch::nn::Module {
 public:
  Layer(const DecoderConfig& config, DecoderLayerKind kind, DecoderLayerWeights weights, int64_t context)
      : config_(config),
        kind_(kind),
        scale_(config.attention_scale > 0 ? config.attention_scale : 1 / std::sqrt(config.head_width)) {
    const auto attention = register_module("self_attn", std::make_shared<torch::nn::Module>("attention"));
    query_ = register_weight(*attention, "q_proj", std::move(weights.query));
    key_ = register_weight(*attention, "k_proj", std::move(weights.key));
    value_ = register_weight(*attention, "v_proj", std::move(weights.value));
    output_ = register_weight(*attention, "o_proj", std::move(weights.attention_output));
    query_norm_ = register_weight(*attention, "q_norm", std::move(weights.query_norm));
    key_norm_ = register_weight(*attention, "k_norm", std::move(weights.key_norm));
    const std::vector<int64_t> cache = {1, config.kv_heads, context, config.head_width};
    keys_ = attention->register_buffer("keys", at::zeros(cache));
    values_ = attention->register_buffer("values", at::zeros(cache));
    const auto forward = register_module("mlp", std::make_shared<torch::nn::Module>("mlp"));
    gate_ = register_weight(*forward, "gate_proj", std::move(weights.gate));
    up_ = register_weight(*forward, "up_proj", std::move(weights.up));
    down_ = register_weight(*forward, "down_proj", std::move(weights.down));
    const bool after = weights.attention_after_norm.weight.defined();
    attention_norm_ = register_weight(*this, "input_layernorm", std::move(weights.attention_norm));
    attention_after_norm_ =
        register_weight(*this, "post_attention_layernorm", std::move(weights.attention_after_norm));
    forward_norm_ = register_weight(*this, after ? "pre_feedforward_layernorm" : "post_attention_layernorm",
                                    std::move(weights.feed_forward_norm));
    forward_after_norm_ =
        register_weight(*this, "post_feedforward_layernorm", std::move(weights.feed_forward_after_norm));
  }

  const DecoderLayerKind& kind() const { return kind_; }

  /// `turn`: null where positions are not turned.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& positions, const Turn* turn,
                     const at::Tensor& keep) {
    const CaptureScope scope(*this);
    const at::Tensor attended = attend(normed(x, attention_norm_, config_), positions, turn, keep);
    const at::Tensor h = x + normed(attended, attention_after_norm_, config_);
    const at::Tensor n = normed(config_.parallel ? x : h, forward_norm_, config_);
    return h + normed(feed_forward(n), forward_after_norm_, config_);
  }

 private:
  at::Tensor feed_forward(const at::Tensor& x) const {
    const at::Tensor up = product(x, up_);
    if (!config_.gated) return product(activated(up, config_.activation), down_);
    return product(activated(product(x, gate_), config_.activation) * up, down_);
  }

  /// x [1, t, heads · d] as heads [1, t, heads, d], with the norm that is over all of them or over each.
  at::Tensor heads_of(const at::Tensor& x, const BiasedWeight& norm) const {
    const int64_t d = config_.head_width, heads = x.size(2) / d;
    const bool all = config_.head_norm == HeadNorm::kAllHeads;
    const at::Tensor split = (all ? normed(x, norm, config_) : x).view({1, x.size(1), heads, d});
    return all ? split : normed(split, norm, config_);
  }

  at::Tensor attend(const at::Tensor& x, const at::Tensor& positions, const Turn* turn,
                    const at::Tensor& keep) {
    const auto turned = [&](const at::Tensor& heads) {
      return turn == nullptr ? heads : rotated(heads, turn->cosines, turn->sines);
    };
    const at::Tensor q = turned(heads_of(product(x, query_), query_norm_)).transpose(1, 2);
    const at::Tensor k = turned(heads_of(product(x, key_), key_norm_)).transpose(1, 2);
    keys_.index_copy_(2, positions, k);
    values_.index_copy_(2, positions, heads_of(product(x, value_), {}).transpose(1, 2));
    const int64_t t = x.size(1), n = keep.size(1);
    const at::Tensor keys = keys_.narrow(2, 0, n), values = values_.narrow(2, 0, n);
    const at::Tensor y = config_.attention_cap > 0
                             ? capped_attention(q, keys, values, keep, scale_, config_.attention_cap)
                             : at::scaled_dot_product_attention(
                                   q, keys, values, keep, /*dropout_p=*/0.0, /*is_causal=*/false, scale_,
                                   /*enable_gqa=*/config_.heads != config_.kv_heads);
    return product(y.transpose(1, 2).reshape({1, t, config_.heads * config_.head_width}), output_);
  }

  const DecoderConfig& config_;
  DecoderLayerKind kind_;
  double scale_;
  BiasedWeight query_, key_, value_, output_, gate_, up_, down_;
  BiasedWeight attention_norm_, attention_after_norm_, query_norm_, key_norm_, forward_norm_,
      forward_after_norm_;
  at::Tensor keys_, values_;  ///< [1, heads of keys and values, context, head width]
};

DecoderModel::DecoderModel(const DecoderConfig& config, DecoderWeights weights, int64_t context)
    : torch::nn::Module("decoder"), config_(config) {
  const auto model = register_module("model", std::make_shared<torch::nn::Module>("model"));
  embedding_ = register_table(*model, "embed_tokens", std::move(weights.embedding));
  positions_ = register_table(*model, "embed_positions", std::move(weights.positions));
  const auto layers = model->register_module("layers", std::make_shared<torch::nn::Module>("layers"));
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    auto layer = std::make_shared<Layer>(config_, config.kind_of(static_cast<int64_t>(i)),
                                         std::move(weights.layers[i]), context);
    layers_.push_back(layers->register_module(std::to_string(i), std::move(layer)));
  }
  norm_ = register_weight(*model, "norm", std::move(weights.norm));
  head_ = weights.head.defined() ? register_table(*this, "lm_head", std::move(weights.head)) : embedding_;
  for (size_t i = 0; i < config.rotaries.size(); ++i) {
    auto [cosines, sines] = rotary_tables(config, config.rotaries[i], context);
    turns_.push_back({model->register_buffer(fmt::format("rotary_cosines_{}", i), std::move(cosines)),
                      model->register_buffer(fmt::format("rotary_sines_{}", i), std::move(sines))});
  }
}
DecoderModel::~DecoderModel() = default;

at::Tensor DecoderModel::forward(const at::Tensor& tokens, const at::Tensor& positions,
                                 const at::Tensor& keep, const at::Tensor& near) {
  at::Tensor x = at::embedding(embedding_, tokens);
  if (positions_.defined()) x = x + at::embedding(positions_, positions);
  std::vector<Turn> turns;  // [t, 1, head width]: the same for all heads
  for (const Turn& turn : turns_)
    turns.push_back({at::embedding(turn.cosines, positions).unsqueeze(1),
                     at::embedding(turn.sines, positions).unsqueeze(1)});
  for (const auto& layer : layers_) {
    const DecoderLayerKind& kind = layer->kind();
    const Turn* turn = kind.rotary < 0 ? nullptr : &turns.at(static_cast<size_t>(kind.rotary));
    x = layer->forward(x, positions, turn, kind.windowed && near.defined() ? near : keep);
  }
  x = x.narrow(1, x.size(1) - 1, 1);
  const at::Tensor logits = at::linear(normed(x, norm_, config_), head_);
  // The weights of the norm have the cap's 1 / c.
  return config_.logit_cap > 0 ? at::tanh(logits) * config_.logit_cap : logits;
}

}  // namespace halftone
