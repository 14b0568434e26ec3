// The config of a decoder from the config.json of a folder, as transformers writes it (versions 4 and 5).
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "archive/bytes/text.h"
#include "base/errors.h"
#include "base/json.h"
#include "decoder/source/config.h"

namespace halftone {

namespace {

/// Other names that older architectures have for a key.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"num_hidden_layers", "n_layer"},           {"hidden_size", "n_embd"},
    {"num_attention_heads", "n_head"},          {"intermediate_size", "n_inner"},
    {"max_position_embeddings", "n_positions"}, {"hidden_act", "activation_function"},
    {"rms_norm_eps", "layer_norm_epsilon"},     {"rms_norm_eps", "layer_norm_eps"},
    {"partial_rotary_factor", "rotary_pct"},    {"rope_theta", "rotary_emb_base"}};

constexpr double kPi = 3.14159265358979323846;

class FolderConfigReader {
 public:
  explicit FolderConfigReader(const JsonCursor& file)
      : file_(file),
        name_(file.at("model_type").get_string()),
        architecture_(architecture_of_model_type(name_, file.path() + ": model_type")),
        config_(config_for(architecture_, file.path())) {}

  DecoderConfig read() {
    config_.architecture = name_;
    config_.norm_offset = architecture_.norm_is_one_plus ? 1 : 0;
    refuse_others();
    read_sizes();
    read_biases();
    read_activation();
    config_.norm_eps = number("rms_norm_eps", 1e-6);
    if (has("tie_word_embeddings")) config_.tied = at("tie_word_embeddings").get_bool();
    read_window();
    read_rotaries();
    read_scales();
    check_decoder_config(config_);
    return std::move(config_);
  }

 private:
  static bool present(const JsonCursor& place, std::string_view key) {
    return place.has(key) && !place.at(key).is_null();
  }
  /// The name by which the file has this key; the key itself if it has none of them.
  std::string_view name_in_file(std::string_view key) const {
    if (present(file_, key)) return key;
    for (const auto& [usual, other] : kOtherNames) {
      if (usual == key && present(file_, other)) return other;
    }
    return key;
  }
  bool has(std::string_view key) const { return present(file_, name_in_file(key)); }
  JsonCursor at(std::string_view key) const { return file_.at(name_in_file(key)); }
  bool flag(std::string_view key, bool otherwise = false) const {
    return has(key) ? at(key).get_bool() : otherwise;
  }
  double number(std::string_view key, double otherwise) const {
    return has(key) ? at(key).get_double() : otherwise;
  }
  int64_t size(std::string_view key, int64_t max) const {
    return checked_size(config_, name_in_file(key), at(key).get_int(), max);
  }
  int64_t size(std::string_view key, int64_t max, int64_t otherwise) const {
    return has(key) ? size(key, max) : otherwise;
  }
  [[noreturn]] static void refuse(const JsonCursor& place, std::string_view why) {
    fail(ErrorCode::kUnsupported, "{}: {}", place.path(), why);
  }

  void refuse_others() const {
    const std::pair<const char*, const char*> refused[] = {
        {"quantization_config", "weights that are quantized already"},
        {"text_config", "a model of several parts"},
        {"num_local_experts", "a mixture of experts"},
        {"num_experts", "a mixture of experts"}};
    for (const auto& [key, why] : refused) {
      if (has(key)) refuse(at(key), why);
    }
    for (const char* key : {"use_bidirectional_attention", "is_encoder_decoder", "add_cross_attention"}) {
      if (flag(key)) refuse(at(key), "this is no decoder");
    }
    if (flag("scale_attn_by_inverse_layer_idx"))
      refuse(at("scale_attn_by_inverse_layer_idx"), "attention that is scaled by the layer");
  }

  void read_sizes() {
    config_.layers = size("num_hidden_layers", kMaxDecoderLayers);
    config_.width = size("hidden_size", kMaxDecoderWidth);
    config_.heads = size("num_attention_heads", kMaxDecoderWidth);
    config_.kv_heads = size("num_key_value_heads", kMaxDecoderWidth, config_.heads);
    const bool is_gpt2 = config_.naming == FolderNaming::kGpt2;  // whose files need not say it
    config_.hidden = is_gpt2 ? size("intermediate_size", kMaxDecoderWidth, 4 * config_.width)
                             : size("intermediate_size", kMaxDecoderWidth);
    config_.vocabulary = size("vocab_size", kMaxDecoderVocabulary);
    config_.trained_context = size("max_position_embeddings", kMaxDecoderContext);
    if (!has("head_dim") && config_.width % config_.heads != 0) {
      at("num_attention_heads")
          .fail_here(fmt::format("{} heads do not divide a hidden_size of {}", config_.heads, config_.width));
    }
    config_.head_width = size("head_dim", kMaxDecoderWidth, config_.width / config_.heads);
  }

  void read_biases() {
    const bool of_attention = flag("attention_bias", config_.output_bias);
    config_.qkv_bias = has("attention_bias") ? of_attention : config_.qkv_bias;
    config_.output_bias = of_attention;
    config_.forward_bias = flag("mlp_bias", config_.forward_bias);
    config_.parallel = config_.parallel && flag("use_parallel_residual", true);
    config_.transposed = config_.naming == FolderNaming::kGpt2;
    config_.qkv_by_heads = config_.naming == FolderNaming::kNeoX;
    if (config_.qkv_by_heads && config_.heads != config_.kv_heads)
      at("num_key_value_heads")
          .fail_here("this architecture has as many heads of keys and values as of queries");
  }

  void read_activation() {
    // Gemma 1's hidden_act names a function that it was not trained with; its models go by hidden_activation.
    const bool by_other_name = architecture_.norm_is_one_plus;
    const char* key = by_other_name ? "hidden_activation" : "hidden_act";
    if (!has(key)) return;
    const std::string name = at(key).get_string();
    if (name == "silu" || name == "swish") {
      config_.activation = DecoderActivation::kSilu;
    } else if (name == "gelu_pytorch_tanh" || name == "gelu_new" || name == "gelu_fast") {
      config_.activation = DecoderActivation::kGeluTanh;
    } else if (name == "gelu") {
      config_.activation = DecoderActivation::kGelu;
    } else {
      refuse(at(key), fmt::format("the activation {}", quote_text(name)));
    }
  }

  /// Files without layer_types go by rules that differ between architectures.
  void read_window() {
    const bool switched_off = file_.has("use_sliding_window") && !flag("use_sliding_window");
    if (has("sliding_window") && !switched_off) config_.window = size("sliding_window", kMaxDecoderContext);
    Architecture rules = architecture_;
    if (has("sliding_window_pattern")) rules.whole_every = size("sliding_window_pattern", kMaxDecoderLayers);
    if (has("no_rope_layer_interval"))
      rules.unturned_every = size("no_rope_layer_interval", kMaxDecoderLayers);
    set_layer_kinds(rules, config_);
    if (has("layer_types")) {
      read_layer_types();
    } else if (has("max_window_layers")) {
      const int64_t whole = at("max_window_layers").get_int();
      for (int64_t i = 0; i < std::min(whole, config_.layers); ++i) kind(i).windowed = false;
    }
    if (has("no_rope_layers")) read_unturned_layers();
  }

  DecoderLayerKind& kind(int64_t layer) { return config_.kinds[static_cast<size_t>(layer)]; }

  JsonCursor list_of_layers(std::string_view key) const {
    const JsonCursor list = at(key);
    if (!list.raw().is_array() || static_cast<int64_t>(list.size()) != config_.layers)
      list.fail_here(fmt::format("expected an array of {} elements, one for each layer", config_.layers));
    return list;
  }

  void read_layer_types() {
    const JsonCursor list = list_of_layers("layer_types");
    for (int64_t i = 0; i < config_.layers; ++i) {
      const JsonCursor place = list.at(static_cast<size_t>(i));
      const std::string type = place.get_string();
      if (type != "full_attention" && type != "sliding_attention")
        refuse(place, fmt::format("a layer of the kind {}", quote_text(type)));
      kind(i).windowed = type == "sliding_attention";
      if (kind(i).windowed && config_.window == 0) place.fail_here("there is no sliding_window");
    }
  }

  /// 1: positions are turned; the name says the opposite.
  void read_unturned_layers() {
    const JsonCursor list = list_of_layers("no_rope_layers");
    for (int64_t i = 0; i < config_.layers; ++i)
      kind(i).rotary = list.at(static_cast<size_t>(i)).get_int() != 0 ? 0 : -1;
  }

  /// Version 5 has rope_parameters, maybe one for each kind of layer; version 4 rope_theta and rope_scaling.
  void read_rotaries() {
    if (config_.learned_positions) return config_.rotaries.clear();
    Rotary rotary = config_.rotaries[0];
    rotary.base = number("rope_theta", rotary.base);
    read_part(file_, name_in_file("partial_rotary_factor"));
    const bool parts = has("rope_parameters") && present(at("rope_parameters"), "full_attention");
    if (has("rope_scaling")) read_rotary(at("rope_scaling"), rotary);
    if (has("rope_parameters") && !parts) read_rotary(at("rope_parameters"), rotary);
    if (parts) read_rotary(at("rope_parameters").at("full_attention"), rotary);
    Rotary windowed{number("rope_local_base_freq", architecture_.local_rotary_base), {}};
    if (parts && present(at("rope_parameters"), "sliding_attention")) {
      windowed.base = rotary.base;
      read_rotary(at("rope_parameters").at("sliding_attention"), windowed);
    }
    config_.rotaries = {std::move(rotary)};
    if (windowed.base == 0) return;
    config_.rotaries.push_back(std::move(windowed));
    for (DecoderLayerKind& each : config_.kinds)
      each.rotary = each.windowed && each.rotary == 0 ? 1 : each.rotary;
  }

  void read_part(const JsonCursor& place, std::string_view key) {
    if (!present(place, key)) return;
    const double part = place.at(key).get_double();
    if (!(part > 0) || !(part <= 1)) place.at(key).fail_here(fmt::format("{} is no part", part));
    config_.rotary_width = static_cast<int64_t>(static_cast<double>(config_.head_width) * part);
  }

  void read_rotary(const JsonCursor& place, Rotary& rotary) {
    if (present(place, "rope_theta")) rotary.base = place.at("rope_theta").get_double();
    read_part(place, "partial_rotary_factor");
    const char* key = present(place, "rope_type") ? "rope_type" : "type";
    const std::string type = place.at(key).get_string();
    if (type == "linear") {
      rotary.divisors = linear_divisors(config_, place.at("factor").get_double());
    } else if (type == "llama3") {
      rotary.divisors = llama3_divisors(place, rotary.base);
    } else if (type != "default") {
      refuse(place.at(key), fmt::format("rotary positions of the kind {}", quote_text(type)));
    }
  }

  /// Slow pairs turn `factor` times more slowly, fast ones as they did, and those between them in between.
  std::vector<double> llama3_divisors(const JsonCursor& place, double base) const {
    const double factor = place.at("factor").get_double();
    const double low = place.at("low_freq_factor").get_double(),
                 high = place.at("high_freq_factor").get_double();
    const double context = place.at("original_max_position_embeddings").get_double();
    if (!(high > low) || !std::isfinite(high - low))
      place.at("high_freq_factor").fail_here("is not above low_freq_factor");
    const int64_t pairs = config_.turned_width() / 2;
    std::vector<double> divisors;
    for (int64_t i = 0; i < pairs; ++i) {
      const double speed = std::pow(base, -static_cast<double>(i) / static_cast<double>(pairs));
      const double turns = context * speed / (2 * kPi);
      const double kept = std::clamp((turns - low) / (high - low), 0.0, 1.0);
      divisors.push_back(1 / ((1 - kept) / factor + kept));
    }
    return divisors;
  }

  void read_scales() {
    if (has("query_pre_attn_scalar"))
      config_.attention_scale = 1 / std::sqrt(number("query_pre_attn_scalar", 0));
    config_.attention_scale = number("attention_multiplier", config_.attention_scale);
    config_.attention_cap = number("attn_logit_softcapping", 0);
    config_.logit_cap = number("final_logit_softcapping", 0);
    config_.embedding_scale =
        number("embedding_multiplier", architecture_.scales_embedding ? std::sqrt(config_.width) : 1);
    config_.residual_scale = number("residual_multiplier", 1);
    config_.logit_scale = 1 / number("logits_scaling", 1);
  }

  const JsonCursor& file_;
  std::string name_;
  const Architecture& architecture_;
  DecoderConfig config_;
};

}  // namespace

DecoderConfig read_decoder_config(const JsonCursor& file) {
  return FolderConfigReader(file).read();
}

}  // namespace halftone
