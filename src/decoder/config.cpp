#include "decoder/config.h"

#include <cmath>

#include "base/errors.h"

namespace halftone {

namespace {

// Far above every published model of this family, far below what would overflow or take all memory for nothing.
constexpr int64_t kMaxLayers = 1024;
constexpr int64_t kMaxWidth = int64_t{1} << 17;
constexpr int64_t kMaxVocabulary = int64_t{1} << 22;
constexpr int64_t kMaxContext = int64_t{1} << 30;

class Reader {
 public:
  Reader(const GgufReader& file, std::string path)
      : file_(file), path_(std::move(path)), architecture_(file.get_string("general.architecture")) {
    if (architecture_ != "llama") {
      fail(ErrorCode::kUnsupported,
           "{}: the architecture is \"{}\"; this version runs \"llama\" (Llama, SmolLM, TinyLlama, Mistral "
           "without a "
           "window)",
           path_, architecture_);
    }
  }

  DecoderConfig read() const {
    DecoderConfig config;
    config.file = path_;
    config.architecture = architecture_;
    if (file_.has("general.name")) config.name = file_.get_string("general.name");
    if (file_.has("tokenizer.chat_template"))
      config.chat_template = file_.get_string("tokenizer.chat_template");
    config.layers = size("block_count", kMaxLayers);
    config.width = size("embedding_length", kMaxWidth);
    config.heads = size("attention.head_count", kMaxWidth);
    config.kv_heads =
        has("attention.head_count_kv") ? size("attention.head_count_kv", kMaxWidth) : config.heads;
    config.hidden = size("feed_forward_length", kMaxWidth);
    config.trained_context = size("context_length", kMaxContext);
    const GgufTensor* table = file_.try_tensor("token_embd.weight");
    if (table == nullptr) fail(ErrorCode::kCorruptFile, "{}: there is no tensor token_embd.weight", path_);
    config.vocabulary = table->rows();
    if (config.vocabulary < 1 || config.vocabulary > kMaxVocabulary)
      fail(ErrorCode::kCorruptFile, "{}: token_embd.weight has {} rows", path_, config.vocabulary);
    config.head_width =
        has("attention.key_length") ? size("attention.key_length", kMaxWidth) : config.width / config.heads;
    if (has("rope.freq_base")) config.rope_base = file_.get_number(key("rope.freq_base"));
    config.norm_eps = file_.get_number(key("attention.layer_norm_rms_epsilon"));
    check(config);
    return config;
  }

 private:
  std::string key(std::string_view name) const { return fmt::format("{}.{}", architecture_, name); }
  bool has(std::string_view name) const { return file_.has(key(name)); }

  int64_t size(std::string_view name, int64_t max) const {
    const int64_t value = file_.get_int(key(name));
    if (value < 1 || value > max)
      fail(ErrorCode::kCorruptFile, "{}: {} is {}, which is not from 1 to {}", path_, key(name), value, max);
    return value;
  }

  void refuse(std::string_view name, std::string_view why) const {
    fail(ErrorCode::kUnsupported, "{}: {}: {}", path_, key(name), why);
  }

  void check(const DecoderConfig& config) const {
    if (config.heads % config.kv_heads != 0) {
      fail(ErrorCode::kCorruptFile, "{}: {} heads cannot share {} heads of keys and values", path_,
           config.heads, config.kv_heads);
    }
    if (!has("attention.key_length") && config.width % config.heads != 0)
      fail(ErrorCode::kCorruptFile, "{}: {} heads do not divide a width of {}", path_, config.heads,
           config.width);
    if (config.head_width % 2 != 0)
      fail(ErrorCode::kCorruptFile, "{}: heads of odd width {} cannot be rotated", path_, config.head_width);
    if (!(config.rope_base > 1) || !std::isfinite(config.rope_base))
      fail(ErrorCode::kCorruptFile, "{}: {} is {}", path_, key("rope.freq_base"), config.rope_base);
    if (!(config.norm_eps > 0) || !(config.norm_eps < 1))
      fail(ErrorCode::kCorruptFile, "{}: {} is {}", path_, key("attention.layer_norm_rms_epsilon"),
           config.norm_eps);
    if (has("attention.value_length") && size("attention.value_length", kMaxWidth) != config.head_width)
      refuse("attention.value_length", "values of another width than keys");
    if (has("rope.dimension_count") && size("rope.dimension_count", kMaxWidth) != config.head_width)
      refuse("rope.dimension_count", "only a part of each head is rotated");
    if (has("rope.scaling.type") && file_.get_string(key("rope.scaling.type")) != "none")
      refuse("rope.scaling.type", "scaled rotary positions");
    if (has("attention.sliding_window") &&
        file_.get_int(key("attention.sliding_window")) < config.trained_context)
      refuse("attention.sliding_window", "attention within a window");
    if (has("expert_count") && file_.get_int(key("expert_count")) > 0)
      refuse("expert_count", "a mixture of experts");
  }

  const GgufReader& file_;
  std::string path_;
  std::string architecture_;
};

}  // namespace

DecoderConfig read_decoder_config(const GgufReader& file, const std::string& path) {
  return Reader(file, path).read();
}

}  // namespace halftone
