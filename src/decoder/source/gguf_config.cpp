// The config of a decoder from the metadata of a GGUF file.
#include <cmath>

#include "base/errors.h"
#include "decoder/source/config.h"

namespace halftone {

namespace {

class GgufConfigReader {
 public:
  GgufConfigReader(const GgufReader& file, const std::string& path)
      : file_(file),
        name_(file.get_string("general.architecture")),
        architecture_(architecture_of_gguf(name_, path)),
        config_(config_for(architecture_, path)) {}

  DecoderConfig read() {
    config_.architecture = name_;
    config_.neighbour_pairs = architecture_.gguf_neighbour_pairs;
    if (file_.has("general.name")) config_.name = file_.get_string("general.name");
    if (file_.has("tokenizer.chat_template"))
      config_.chat_template = file_.get_string("tokenizer.chat_template");
    read_sizes();
    read_biases();
    config_.norm_eps = file_.get_number(
        key(config_.layer_norms ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon"));
    if (config_.parallel && has("use_parallel_residual"))
      config_.parallel = file_.get_bool(key("use_parallel_residual"));
    refuse_others();
    read_window();
    read_rotaries();
    read_scales();
    for (const char* end : {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
      if (file_.has(end)) config_.end_ids.push_back(file_.get_int(end));
    }
    check_decoder_config(config_);
    return std::move(config_);
  }

 private:
  std::string key(std::string_view name) const { return fmt::format("{}.{}", name_, name); }
  bool has(std::string_view name) const { return file_.has(key(name)); }
  double number(std::string_view name, double otherwise) const {
    return has(name) ? file_.get_number(key(name)) : otherwise;
  }
  int64_t size(std::string_view name, int64_t max) const {
    return checked_size(config_, key(name), file_.get_int(key(name)), max);
  }
  int64_t size(std::string_view name, int64_t max, int64_t otherwise) const {
    return has(name) ? size(name, max) : otherwise;
  }
  [[noreturn]] void refuse(std::string_view name, std::string_view why) const {
    fail(ErrorCode::kUnsupported, "{}: {}: {}", config_.file, key(name), why);
  }

  void read_sizes() {
    config_.layers = size("block_count", kMaxDecoderLayers);
    config_.width = size("embedding_length", kMaxDecoderWidth);
    config_.heads = size("attention.head_count", kMaxDecoderWidth);
    config_.kv_heads = size("attention.head_count_kv", kMaxDecoderWidth, config_.heads);
    config_.hidden = size("feed_forward_length", kMaxDecoderWidth);
    config_.trained_context = size("context_length", kMaxDecoderContext);
    const GgufTensor* table = file_.try_tensor("token_embd.weight");
    if (table == nullptr)
      fail(ErrorCode::kCorruptFile, "{}: there is no tensor token_embd.weight", config_.file);
    config_.vocabulary = checked_size(config_, "the number of rows of token_embd.weight", table->rows(),
                                      kMaxDecoderVocabulary);
    if (!has("attention.key_length") && config_.width % config_.heads != 0) {
      fail(ErrorCode::kCorruptFile, "{}: {} heads do not divide a width of {}", config_.file, config_.heads,
           config_.width);
    }
    config_.head_width = size("attention.key_length", kMaxDecoderWidth, config_.width / config_.heads);
    if (size("attention.value_length", kMaxDecoderWidth, config_.head_width) != config_.head_width)
      refuse("attention.value_length", "values of another width than keys");
  }

  /// Where the architecture leaves it to the model; the other layers must then have them too.
  void read_biases() {
    const auto has_bias = [&](const char* part) {
      return file_.try_tensor(fmt::format("blk.0.{}.bias", part)) != nullptr;
    };
    config_.qkv_bias = config_.qkv_bias || has_bias("attn_q");
    config_.output_bias = config_.output_bias || has_bias("attn_output");
    config_.forward_bias = config_.forward_bias || has_bias("ffn_down");
  }

  void refuse_others() const {
    if (has("expert_count") && file_.get_int(key("expert_count")) > 0)
      refuse("expert_count", "a mixture of experts");
    for (const char* factors : {"rope_factors_long.weight", "rope_factors_short.weight"}) {
      if (file_.try_tensor(factors) != nullptr) {
        fail(ErrorCode::kUnsupported, "{}: {}: rotary positions of the kind longrope (su)", config_.file,
             factors);
      }
    }
  }

  void read_window() {
    if (has("attention.sliding_window") && file_.get_int(key("attention.sliding_window")) != 0)
      config_.window = size("attention.sliding_window", kMaxDecoderContext);
    if (has("attention.sliding_window_pattern"))
      refuse("attention.sliding_window_pattern", "windows in an order of the file's own");
    set_layer_kinds(architecture_, config_);
  }

  void read_rotaries() {
    if (config_.learned_positions) return config_.rotaries.clear();
    config_.rotary_width = size("rope.dimension_count", config_.head_width, config_.head_width);
    Rotary rotary;
    rotary.base = number("rope.freq_base", architecture_.rotary_base);
    const std::string type =
        has("rope.scaling.type") ? std::string(file_.get_string(key("rope.scaling.type"))) : "none";
    if (type == "linear") {
      rotary.divisors = linear_divisors(config_, file_.get_number(key("rope.scaling.factor")));
    } else if (type != "none") {
      refuse("rope.scaling.type", fmt::format("rotary positions of the kind {}", type));
    }
    if (number("rope.scale_linear", 1) != 1)
      refuse("rope.scale_linear", "an old form of scaled rotary positions");
    if (const GgufTensor* factors = file_.try_tensor("rope_freqs.weight"))
      rotary.divisors = divisors_of(*factors);
    config_.rotaries = {std::move(rotary)};
    const double local = number("rope.freq_base_swa", architecture_.local_rotary_base);
    if (local == 0) return;
    config_.rotaries.push_back({local, {}});
    for (DecoderLayerKind& kind : config_.kinds) kind.rotary = kind.windowed ? 1 : kind.rotary;
  }

  /// One divisor for each pair: how files of Llama 3.1 have its scaling.
  std::vector<double> divisors_of(const GgufTensor& factors) const {
    const int64_t pairs = config_.turned_width() / 2;
    if (factors.shape() != std::vector<int64_t>{pairs}) {
      fail(ErrorCode::kCorruptFile, "{}: rope_freqs.weight has {} numbers for {} pairs", config_.file,
           factors.values, pairs);
    }
    std::vector<float> values(static_cast<size_t>(pairs));
    file_.read_rows(factors, 0, values);
    return {values.begin(), values.end()};
  }

  void read_scales() {
    config_.attention_scale = number("attention.scale", 0);
    config_.attention_cap = number("attn_logit_softcapping", 0);
    config_.logit_cap = number("final_logit_softcapping", 0);
    config_.embedding_scale =
        number("embedding_scale", architecture_.scales_embedding ? std::sqrt(config_.width) : 1);
    config_.residual_scale = number("residual_scale", 1);
    config_.logit_scale = 1 / number("logit_scale", 1);
    // The two largest Gemmas scale by their width, which no key says; llama.cpp goes by the number of layers too.
    const bool by_width =
        (name_ == "gemma2" && config_.layers == 46) || (name_ == "gemma3" && config_.layers == 62);
    if (by_width && config_.attention_scale == 0)
      config_.attention_scale =
          std::sqrt(static_cast<double>(config_.heads) / static_cast<double>(config_.width));
  }

  const GgufReader& file_;
  std::string name_;
  const Architecture& architecture_;
  DecoderConfig config_;
};

}  // namespace

DecoderConfig read_decoder_config(const GgufReader& file, const std::string& path) {
  return GgufConfigReader(file, path).read();
}

}  // namespace halftone
