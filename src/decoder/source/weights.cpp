#include "decoder/source/weights.h"

#include <ATen/ops/tensor.h>
#include <fmt/ranges.h>

#include <numeric>
#include <set>

#include "base/errors.h"

namespace halftone {

namespace {

/// Where the numbers of a head go: those that turn together stand half a head apart, and what does not turn fills both
/// halves up. Scores do not change when queries and keys are reordered alike. Empty: they stay.
std::vector<int64_t> order_of_head(const DecoderConfig& config) {
  const int64_t turned = config.turned_width(), rest = config.head_width - turned;
  if (!config.neighbour_pairs && rest == 0) return {};
  std::vector<int64_t> order;
  for (const int64_t half : {0, 1}) {
    for (int64_t i = 0; i < turned / 2; ++i)
      order.push_back(config.neighbour_pairs ? 2 * i + half : half * turned / 2 + i);
    for (int64_t i = 0; i < rest / 2; ++i) order.push_back(turned + half * (rest / 2) + i);
  }
  return order;
}

class WeightReader {
 public:
  WeightReader(const WeightSource& source, const DecoderConfig& config, const ProgressCallback& progress)
      : source_(source), config_(config), progress_(progress), order_(order_of_head(config)) {}

  DecoderWeights read() {
    // Names and shapes first: reading takes seconds.
    walk();
    require_all();
    only_look_ = false;
    return walk();
  }

 private:
  using Shape = std::vector<int64_t>;
  static constexpr size_t kMaxProblems = 20;

  DecoderWeights walk() {
    DecoderWeights weights;
    layer_ = -1;
    weights.embedding = tensor("token_embd", {config_.vocabulary, config_.width});
    weights.norm = norm("output_norm", config_.width);
    read_head(weights);
    if (config_.learned_positions)
      weights.positions = tensor("position_embd", {config_.trained_context, config_.width});
    for (layer_ = 0; layer_ < config_.layers && problems_.size() <= kMaxProblems; ++layer_)
      weights.layers.push_back(read_layer());
    if (only_look_) return weights;
    if (config_.embedding_scale != 1) scale_embedding(weights);
    weights.norm = scaled(weights.norm, logit_factor());
    return weights;
  }

  void read_head(DecoderWeights& weights) {
    const std::string name = source_.name_of("output", "weight");
    if (config_.tied.value_or(!source_.has(name))) {
      used_.insert(name);  // some files have it twice
    } else {
      weights.head = tensor("output", {config_.vocabulary, config_.width});
    }
  }

  /// Where the head is the embedding, it must not see the factor.
  void scale_embedding(DecoderWeights& weights) const {
    weights.embedding.mul_(config_.embedding_scale);
    if (!weights.head.defined()) weights.norm = scaled(weights.norm, 1 / config_.embedding_scale);
  }
  double logit_factor() const {
    return config_.logit_cap > 0 ? config_.logit_scale / config_.logit_cap : config_.logit_scale;
  }

  DecoderLayerWeights read_layer() {
    DecoderLayerWeights layer;
    if (config_.norms_before) {
      layer.attention_norm = norm("attn_norm", config_.width);
      layer.feed_forward_norm = norm("ffn_norm", config_.width);
    }
    if (config_.norms_after) {
      layer.attention_after_norm = residual(norm("post_attention_norm", config_.width));
      layer.feed_forward_after_norm = residual(norm("post_ffw_norm", config_.width));
    }
    read_attention(layer);
    read_head_norms(layer);
    read_forward(layer);
    return layer;
  }

  void read_attention(DecoderLayerWeights& layer) {
    const int64_t queries = config_.heads * config_.head_width, keys = config_.kv_heads * config_.head_width;
    if (source_.has(source_.name_of("attn_qkv", "weight", layer_))) {
      const auto parts =
          split(in_thirds(linear("attn_qkv", queries + 2 * keys, config_.width, config_.qkv_bias)),
                {queries, keys, keys});
      layer.query = parts[0], layer.key = parts[1], layer.value = parts[2];
    } else {
      layer.query = linear("attn_q", queries, config_.width, config_.qkv_bias);
      layer.key = linear("attn_k", keys, config_.width, config_.qkv_bias);
      layer.value = linear("attn_v", keys, config_.width, config_.qkv_bias);
    }
    layer.query = reordered(layer.query);
    layer.key = reordered(layer.key);
    layer.attention_output = result(linear("attn_output", config_.width, queries, config_.output_bias));
  }

  void read_head_norms(DecoderLayerWeights& layer) {
    if (config_.head_norm == HeadNorm::kNone) return;
    const bool all = config_.head_norm == HeadNorm::kAllHeads;
    layer.query_norm = reordered(norm("attn_q_norm", config_.head_width * (all ? config_.heads : 1)));
    layer.key_norm = reordered(norm("attn_k_norm", config_.head_width * (all ? config_.kv_heads : 1)));
  }

  void read_forward(DecoderLayerWeights& layer) {
    layer.down = result(linear("ffn_down", config_.width, config_.hidden, config_.forward_bias));
    if (!config_.gated) {
      layer.up = linear("ffn_up", config_.hidden, config_.width, config_.forward_bias);
      return;
    }
    const std::string joined = source_.name_of("ffn_gate_up", "weight", layer_);
    const std::string apart = source_.name_of("ffn_gate", "weight", layer_);
    if (source_.has(joined) && !source_.has(apart)) {
      const auto parts = split(linear("ffn_gate_up", 2 * config_.hidden, config_.width, config_.forward_bias),
                               {config_.hidden, config_.hidden});
      layer.gate = parts[0], layer.up = parts[1];
    } else {
      layer.gate = linear("ffn_gate", config_.hidden, config_.width, config_.forward_bias);
      layer.up = linear("ffn_up", config_.hidden, config_.width, config_.forward_bias);
    }
  }

  BiasedWeight linear(std::string_view part, int64_t outputs, int64_t inputs, bool bias) {
    BiasedWeight linear;
    if (config_.transposed) {
      const at::Tensor weight = tensor(part, {inputs, outputs});
      if (!only_look_) linear.weight = weight.t().contiguous();
    } else {
      linear.weight = tensor(part, {outputs, inputs});
    }
    if (bias) linear.bias = tensor(part, {outputs}, "bias");
    return linear;
  }

  BiasedWeight norm(std::string_view part, int64_t width) {
    BiasedWeight norm{tensor(part, {width}), {}};
    if (config_.layer_norms) norm.bias = tensor(part, {width}, "bias");
    if (!only_look_ && config_.norm_offset != 0) norm.weight = norm.weight + config_.norm_offset;
    return norm;
  }

  static BiasedWeight scaled(const BiasedWeight& given, double factor) {
    const auto times = [&](const at::Tensor& tensor) { return tensor.defined() ? tensor * factor : tensor; };
    return factor == 1 ? given : BiasedWeight{times(given.weight), times(given.bias)};
  }

  /// What is added to the residual stream has the config's factor, in the last step that makes it.
  BiasedWeight residual(const BiasedWeight& last) const { return scaled(last, config_.residual_scale); }
  BiasedWeight result(const BiasedWeight& linear) const {
    return config_.norms_after ? linear : residual(linear);
  }

  /// Rows of all queries, all keys, all values.
  BiasedWeight in_thirds(const BiasedWeight& joined) const {
    if (!config_.qkv_by_heads || only_look_) return joined;
    const auto sorted = [&](const at::Tensor& rows) {
      return rows.defined()
                 ? rows.view({config_.heads, 3, config_.head_width, -1}).transpose(0, 1).reshape(rows.sizes())
                 : rows;
    };
    return {sorted(joined.weight), sorted(joined.bias)};
  }

  static std::vector<BiasedWeight> split(const BiasedWeight& linear, const Shape& rows) {
    std::vector<BiasedWeight> parts;
    int64_t at = 0;
    for (const int64_t count : rows) {
      const auto part = [&](const at::Tensor& whole) {
        return whole.defined() ? whole.narrow(0, at, count).clone() : at::Tensor();
      };
      parts.push_back({part(linear.weight), part(linear.bias)});
      at += count;
    }
    return parts;
  }

  /// Rows of queries or keys.
  BiasedWeight reordered(const BiasedWeight& given) const {
    const auto sorted = [&](const at::Tensor& rows) {
      if (!rows.defined() || order_.empty()) return rows;
      return rows.view({rows.size(0) / config_.head_width, config_.head_width, -1})
          .index_select(1, at::tensor(order_))
          .reshape(rows.sizes());
    };
    return {sorted(given.weight), sorted(given.bias)};
  }

  at::Tensor tensor(std::string_view part, const Shape& shape, std::string_view kind = "weight") {
    const std::string name = source_.name_of(part, kind, layer_);
    if (!only_look_) {
      at::Tensor values = source_.read(name);
      if (progress_) progress_(++done_, static_cast<int64_t>(used_.size()), name);
      return values;
    }
    const auto found = source_.try_shape(name);
    if (!found) {
      problems_.push_back(name + " is missing");
    } else if (*found != shape) {
      problems_.push_back(
          fmt::format("{} is [{}], not [{}]", name, fmt::join(*found, ", "), fmt::join(shape, ", ")));
    }
    used_.insert(name);
    return {};
  }

  void require_all() {
    for (const std::string& name : source_.names()) {
      if (!used_.contains(name))
        problems_.push_back(fmt::format("{} is not known in this architecture", name));
    }
    if (problems_.empty()) return;
    const size_t more = problems_.size() > kMaxProblems ? problems_.size() - kMaxProblems : 0;
    problems_.resize(problems_.size() - more);
    fail(ErrorCode::kCorruptFile, "{}: the tensors do not fit a {} of {} layers: {}{}", config_.file,
         config_.architecture, config_.layers, fmt::join(problems_, "; "),
         more > 0 ? fmt::format("; and {} more", more) : "");
  }

  const WeightSource& source_;
  const DecoderConfig& config_;
  const ProgressCallback& progress_;
  std::vector<int64_t> order_;
  bool only_look_ = true;
  int64_t layer_ = -1;
  std::set<std::string> used_;
  std::vector<std::string> problems_;
  int64_t done_ = 0;
};

}  // namespace

DecoderWeights read_decoder_weights(const WeightSource& source, const DecoderConfig& config,
                                    const ProgressCallback& progress) {
  return WeightReader(source, config, progress).read();
}

}  // namespace halftone
