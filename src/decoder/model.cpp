#include "decoder/model.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/zeros.h>

#include "halftone/capture/capture_module.h"

namespace halftone {

namespace {

/// A module that is one tensor, so that it gets a name of its own.
struct Weight : torch::nn::Module {
  explicit Weight(at::Tensor tensor) : tensor(register_parameter("weight", std::move(tensor), false)) {}
  at::Tensor tensor;
};

at::Tensor register_weight(torch::nn::Module& parent, const std::string& name, at::Tensor tensor) {
  return parent.register_module(name, std::make_shared<Weight>(std::move(tensor)))->tensor;
}

/// The angle of position p and pair i is p · base^(-2i / d); both halves of a head have the same angles.
std::pair<at::Tensor, at::Tensor> rotary_tables(const DecoderConfig& config, int64_t context) {
  const int64_t d = config.head_width;
  const at::Tensor exponents = at::arange(0, d, 2, at::kDouble) / static_cast<double>(d);
  const at::Tensor speeds = at::pow(config.rope_base, exponents.neg());
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

}  // namespace

class DecoderModel::Layer : public torch::nn::Module {
 public:
  Layer(const DecoderConfig& config, DecoderLayerWeights weights, int64_t context)
      : heads_(config.heads), kv_heads_(config.kv_heads), width_(config.head_width), eps_(config.norm_eps) {
    const auto attention = register_module("self_attn", std::make_shared<torch::nn::Module>("attention"));
    query_ = register_weight(*attention, "q_proj", std::move(weights.query));
    key_ = register_weight(*attention, "k_proj", std::move(weights.key));
    value_ = register_weight(*attention, "v_proj", std::move(weights.value));
    output_ = register_weight(*attention, "o_proj", std::move(weights.attention_output));
    const std::vector<int64_t> cache = {1, kv_heads_, context, width_};
    keys_ = attention->register_buffer("keys", at::zeros(cache));
    values_ = attention->register_buffer("values", at::zeros(cache));
    const auto forward = register_module("mlp", std::make_shared<torch::nn::Module>("mlp"));
    gate_ = register_weight(*forward, "gate_proj", std::move(weights.gate));
    up_ = register_weight(*forward, "up_proj", std::move(weights.up));
    down_ = register_weight(*forward, "down_proj", std::move(weights.down));
    attention_norm_ = register_weight(*this, "input_layernorm", std::move(weights.attention_norm));
    forward_norm_ = register_weight(*this, "post_attention_layernorm", std::move(weights.feed_forward_norm));
  }

  at::Tensor forward(const at::Tensor& x, const at::Tensor& positions, const at::Tensor& cosines,
                     const at::Tensor& sines, const at::Tensor& keep) {
    const CaptureScope scope(*this);
    const at::Tensor h = x + attend(normed(x, attention_norm_), positions, cosines, sines, keep);
    const at::Tensor n = normed(h, forward_norm_);
    return h + at::linear(at::silu(at::linear(n, gate_)) * at::linear(n, up_), down_);
  }

 private:
  at::Tensor normed(const at::Tensor& x, const at::Tensor& weight) const {
    return at::rms_norm(x, {x.size(2)}, weight, eps_);
  }

  at::Tensor attend(const at::Tensor& x, const at::Tensor& positions, const at::Tensor& cosines,
                    const at::Tensor& sines, const at::Tensor& keep) {
    const int64_t t = x.size(1);
    const at::Tensor q = rotated(at::linear(x, query_).view({1, t, heads_, width_}), cosines, sines);
    const at::Tensor k = rotated(at::linear(x, key_).view({1, t, kv_heads_, width_}), cosines, sines);
    const at::Tensor v = at::linear(x, value_).view({1, t, kv_heads_, width_});
    keys_.index_copy_(2, positions, k.transpose(1, 2));
    values_.index_copy_(2, positions, v.transpose(1, 2));
    const int64_t n = keep.size(1);
    const at::Tensor y = at::scaled_dot_product_attention(
        q.transpose(1, 2), keys_.narrow(2, 0, n), values_.narrow(2, 0, n), keep,
        /*dropout_p=*/0.0, /*is_causal=*/false, /*scale=*/std::nullopt,
        /*enable_gqa=*/heads_ != kv_heads_);
    return at::linear(y.transpose(1, 2).reshape({1, t, heads_ * width_}), output_);
  }

  int64_t heads_, kv_heads_, width_;
  double eps_;
  at::Tensor attention_norm_, query_, key_, value_, output_, forward_norm_, gate_, up_, down_;
  at::Tensor keys_, values_;  ///< [1, heads of keys and values, context, head width]
};

DecoderModel::DecoderModel(const DecoderConfig& config, DecoderWeights weights, int64_t context)
    : torch::nn::Module("decoder"), norm_eps_(config.norm_eps) {
  const auto model = register_module("model", std::make_shared<torch::nn::Module>("model"));
  embedding_ = register_weight(*model, "embed_tokens", std::move(weights.embedding));
  const auto layers = model->register_module("layers", std::make_shared<torch::nn::Module>("layers"));
  for (size_t i = 0; i < weights.layers.size(); ++i)
    layers_.push_back(layers->register_module(
        std::to_string(i), std::make_shared<Layer>(config, std::move(weights.layers[i]), context)));
  norm_ = register_weight(*model, "norm", std::move(weights.norm));
  head_ = weights.head.defined() ? register_weight(*this, "lm_head", std::move(weights.head)) : embedding_;
  auto [cosines, sines] = rotary_tables(config, context);
  cosines_ = model->register_buffer("rotary_cosines", std::move(cosines));
  sines_ = model->register_buffer("rotary_sines", std::move(sines));
}
DecoderModel::~DecoderModel() = default;

at::Tensor DecoderModel::forward(const at::Tensor& tokens, const at::Tensor& positions,
                                 const at::Tensor& keep) {
  at::Tensor x = at::embedding(embedding_, tokens);
  // [t, 1, head width]: the same for all heads.
  const at::Tensor cosines = at::embedding(cosines_, positions).unsqueeze(1);
  const at::Tensor sines = at::embedding(sines_, positions).unsqueeze(1);
  for (const auto& layer : layers_) x = layer->forward(x, positions, cosines, sines, keep);
  x = x.narrow(1, x.size(1) - 1, 1);
  return at::linear(at::rms_norm(x, {x.size(2)}, norm_, norm_eps_), head_);
}

}  // namespace halftone
