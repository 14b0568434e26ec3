// The table of architectures, and what configs of GGUF files and of folders have in common.
#include "decoder/source/config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "archive/bytes/text.h"
#include "base/errors.h"

namespace halftone {

namespace {

constexpr DecoderTraits kLlama;
constexpr DecoderTraits kGemma1 = {.activation = DecoderActivation::kGeluTanh};
constexpr DecoderTraits kGemma2 = {.activation = DecoderActivation::kGeluTanh, .norms_after = true};
constexpr DecoderTraits kGemma3 = {
    .activation = DecoderActivation::kGeluTanh, .head_norm = HeadNorm::kHead, .norms_after = true};

constexpr DecoderTraits kGpt2 = {.activation = DecoderActivation::kGeluTanh,
                                 .qkv_bias = true,
                                 .output_bias = true,
                                 .forward_bias = true,
                                 .layer_norms = true,
                                 .gated = false,
                                 .learned_positions = true};
constexpr DecoderTraits kNeoX = {.activation = DecoderActivation::kGelu,
                                 .qkv_bias = true,
                                 .output_bias = true,
                                 .forward_bias = true,
                                 .layer_norms = true,
                                 .gated = false,
                                 .parallel = true};

constexpr Architecture kArchitectures[] = {
    {.gguf = "llama", .model_type = "llama", .traits = kLlama, .gguf_neighbour_pairs = true},
    {.gguf = "", .model_type = "mistral", .traits = kLlama},
    {.gguf = "qwen2", .model_type = "qwen2", .traits = {.qkv_bias = true}},
    {.gguf = "qwen3", .model_type = "qwen3", .traits = {.head_norm = HeadNorm::kHead}},
    {.gguf = "gemma",
     .model_type = "gemma",
     .traits = kGemma1,
     .scales_embedding = true,
     .norm_is_one_plus = true},
    {.gguf = "gemma2",
     .model_type = "gemma2",
     .traits = kGemma2,
     .scales_embedding = true,
     .norm_is_one_plus = true,
     .whole_every = 2},
    {.gguf = "gemma3",
     .model_type = "gemma3_text",
     .traits = kGemma3,
     .scales_embedding = true,
     .norm_is_one_plus = true,
     .whole_every = 6,
     .local_rotary_base = 10000,
     .rotary_base = 1000000},
    {.gguf = "phi3", .model_type = "phi3", .traits = kLlama},
    {.gguf = "olmo2",
     .model_type = "olmo2",
     .traits = {.head_norm = HeadNorm::kAllHeads, .norms_before = false, .norms_after = true}},
    {.gguf = "granite", .model_type = "granite", .traits = kLlama, .gguf_neighbour_pairs = true},
    {.gguf = "smollm3",
     .model_type = "smollm3",
     .traits = kLlama,
     .gguf_neighbour_pairs = true,
     .unturned_every = 4},
    {.gguf = "gpt2", .model_type = "gpt2", .traits = kGpt2, .naming = FolderNaming::kGpt2},
    {.gguf = "gptneox", .model_type = "gpt_neox", .traits = kNeoX, .naming = FolderNaming::kNeoX},
};

const Architecture& architecture_of(std::string_view Architecture::*member, std::string_view name,
                                    const std::string& path) {
  std::vector<std::string_view> known;
  for (const Architecture& each : kArchitectures) {
    if ((each.*member).empty()) continue;
    if (each.*member == name) return each;
    known.push_back(each.*member);
  }
  fail(ErrorCode::kUnsupported, "{}: the architecture is {}; this version runs {}", path, quote_text(name),
       fmt::join(known, ", "));
}

constexpr int64_t kMaxHeadWidth = 8192;  // tables of rotary positions are so wide

[[noreturn]] void fail_config(const DecoderConfig& config, std::string_view what) {
  fail(ErrorCode::kCorruptFile, "{}: {}", config.file, what);
}

void check_rotaries(const DecoderConfig& config) {
  if (config.rotaries.empty()) return;
  const int64_t width = config.turned_width();
  if (config.head_width % 2 != 0)
    fail_config(config, fmt::format("heads of odd width {} cannot be rotated", config.head_width));
  if (width % 2 != 0 || width < 2 || width > config.head_width)
    fail_config(config,
                fmt::format("{} of the {} numbers of a head cannot be rotated", width, config.head_width));
  for (const Rotary& rotary : config.rotaries) {
    if (!(rotary.base > 1) || !std::isfinite(rotary.base))
      fail_config(config, fmt::format("the base of rotary positions is {}", rotary.base));
    if (!rotary.divisors.empty() && static_cast<int64_t>(rotary.divisors.size()) != width / 2)
      fail_config(config, fmt::format("{} factors of rotary positions for {} pairs", rotary.divisors.size(),
                                      width / 2));
    for (const double divisor : rotary.divisors) {
      if (!(divisor > 1e-6) || !(divisor < 1e6))
        fail_config(config, fmt::format("a factor of rotary positions is {}", divisor));
    }
  }
}

void check_numbers(const DecoderConfig& config) {
  if (!(config.norm_eps > 0) || !(config.norm_eps < 1))
    fail_config(config, fmt::format("the epsilon of its norms is {}", config.norm_eps));
  const std::pair<std::string_view, double> factors[] = {{"embeddings", config.embedding_scale},
                                                         {"residuals", config.residual_scale},
                                                         {"logits", config.logit_scale}};
  for (const auto& [what, factor] : factors) {
    if (!(factor > 0) || !(factor < 1e6))
      fail_config(config, fmt::format("the factor of {} is {}", what, factor));
  }
  const std::pair<std::string_view, double> optional[] = {{"the factor of attention", config.attention_scale},
                                                          {"the cap of attention", config.attention_cap},
                                                          {"the cap of logits", config.logit_cap}};
  for (const auto& [what, number] : optional) {  // 0: none
    if (!(number >= 0) || !(number < 1e6)) fail_config(config, fmt::format("{} is {}", what, number));
  }
}

}  // namespace

bool DecoderConfig::has_window_within(int64_t context) const {
  const bool some =
      std::any_of(kinds.begin(), kinds.end(), [](const DecoderLayerKind& kind) { return kind.windowed; });
  return some && window < context;
}

const Architecture& architecture_of_gguf(std::string_view name, const std::string& path) {
  return architecture_of(&Architecture::gguf, name, path);
}
const Architecture& architecture_of_model_type(std::string_view name, const std::string& path) {
  return architecture_of(&Architecture::model_type, name, path);
}

DecoderConfig config_for(const Architecture& architecture, const std::string& path) {
  DecoderConfig config;
  static_cast<DecoderTraits&>(config) = architecture.traits;
  config.file = path;
  config.naming = architecture.naming;
  config.rotaries[0].base = architecture.rotary_base;
  return config;
}

void set_layer_kinds(const Architecture& architecture, DecoderConfig& config) {
  const auto is_each = [](int64_t layer, int64_t every) { return every != 0 && (layer + 1) % every == 0; };
  config.kinds.assign(static_cast<size_t>(config.layers), {});
  for (int64_t i = 0; i < config.layers; ++i) {
    DecoderLayerKind& kind = config.kinds[static_cast<size_t>(i)];
    kind.windowed = config.window > 0 && !is_each(i, architecture.whole_every);
    if (config.learned_positions || is_each(i, architecture.unturned_every)) kind.rotary = -1;
  }
}

std::vector<double> linear_divisors(const DecoderConfig& config, double factor) {
  return std::vector<double>(static_cast<size_t>(config.turned_width() / 2), factor);
}

int64_t checked_size(const DecoderConfig& config, std::string_view field, int64_t value, int64_t max) {
  if (value < 1 || value > max)
    fail_config(config, fmt::format("{} is {}, which is not from 1 to {}", field, value, max));
  return value;
}

void check_decoder_config(const DecoderConfig& config) {
  if (config.heads % config.kv_heads != 0)
    fail_config(config, fmt::format("{} heads cannot share {} heads of keys and values", config.heads,
                                    config.kv_heads));
  for (const int64_t heads : {config.heads, config.kv_heads}) {
    if (heads * config.head_width > kMaxDecoderWidth)
      fail_config(config, fmt::format("{} heads of width {} are too wide", heads, config.head_width));
  }
  if (!config.kinds.empty() && static_cast<int64_t>(config.kinds.size()) != config.layers)
    fail_config(config, fmt::format("kinds of {} layers, there are {}", config.kinds.size(), config.layers));
  if (config.head_width > kMaxHeadWidth)
    fail_config(config, fmt::format("heads of width {} are too wide", config.head_width));
  check_rotaries(config);
  check_numbers(config);
}

}  // namespace halftone
