// Weights from safetensors files, under the names that transformers gives them.
#include <ATen/ops/empty.h>

#include <algorithm>
#include <span>

#include "base/checked.h"
#include "base/errors.h"
#include "decoder/source/weight_source.h"
#include "graph/aten/dtypes.h"

namespace halftone {

namespace {

struct PartName {
  std::string_view part, name;
};

constexpr PartName kLlamaParts[] = {{"token_embd", "model.embed_tokens"},
                                    {"output_norm", "model.norm"},
                                    {"output", "lm_head"},
                                    {"attn_norm", "input_layernorm"},
                                    {"attn_q", "self_attn.q_proj"},
                                    {"attn_k", "self_attn.k_proj"},
                                    {"attn_v", "self_attn.v_proj"},
                                    {"attn_qkv", "self_attn.qkv_proj"},
                                    {"attn_q_norm", "self_attn.q_norm"},
                                    {"attn_k_norm", "self_attn.k_norm"},
                                    {"attn_output", "self_attn.o_proj"},
                                    {"post_attention_norm", "post_attention_layernorm"},
                                    {"ffn_norm", "post_attention_layernorm"},
                                    {"post_ffw_norm", "post_feedforward_layernorm"},
                                    {"ffn_gate", "mlp.gate_proj"},
                                    {"ffn_up", "mlp.up_proj"},
                                    {"ffn_gate_up", "mlp.gate_up_proj"},
                                    {"ffn_down", "mlp.down_proj"}};
constexpr PartName kGpt2Parts[] = {{"token_embd", "transformer.wte"},
                                   {"position_embd", "transformer.wpe"},
                                   {"output_norm", "transformer.ln_f"},
                                   {"output", "lm_head"},
                                   {"attn_norm", "ln_1"},
                                   {"attn_qkv", "attn.c_attn"},
                                   {"attn_output", "attn.c_proj"},
                                   {"ffn_norm", "ln_2"},
                                   {"ffn_up", "mlp.c_fc"},
                                   {"ffn_down", "mlp.c_proj"}};
constexpr PartName kNeoXParts[] = {{"token_embd", "gpt_neox.embed_in"},
                                   {"output_norm", "gpt_neox.final_layer_norm"},
                                   {"output", "embed_out"},
                                   {"attn_norm", "input_layernorm"},
                                   {"attn_qkv", "attention.query_key_value"},
                                   {"attn_output", "attention.dense"},
                                   {"ffn_norm", "post_attention_layernorm"},
                                   {"ffn_up", "mlp.dense_h_to_4h"},
                                   {"ffn_down", "mlp.dense_4h_to_h"}};

struct Names {
  std::span<const PartName> parts;
  std::string_view layers;  ///< before the number of a layer
};

Names names_of(FolderNaming naming) {
  if (naming == FolderNaming::kGpt2) return {kGpt2Parts, "transformer.h."};
  if (naming == FolderNaming::kNeoX) return {kNeoXParts, "gpt_neox.layers."};
  return {kLlamaParts, "model.layers."};
}

/// Tables that follow from the config; old versions of transformers stored them.
bool is_derived(std::string_view name) {
  constexpr std::string_view kEnds[] = {".rotary_emb.inv_freq", ".attn.bias", ".attn.masked_bias",
                                        ".attention.bias", ".attention.masked_bias"};
  return std::any_of(std::begin(kEnds), std::end(kEnds),
                     [&](std::string_view end) { return name.ends_with(end); });
}

class FolderWeights final : public WeightSource {
 public:
  FolderWeights(SafetensorsFile file, const DecoderTraits& traits, FolderNaming naming)
      : file_(std::move(file)), norms_after_(traits.norms_after), names_(names_of(naming)) {
    for (const SafetensorsEntry& entry : file_.entries()) {
      if (!is_derived(entry.name) && !is_readable(entry.dtype)) {
        fail(ErrorCode::kUnsupported, "{}: tensor \"{}\" is {}; weights are read as F32, F16 or BF16",
             entry.owner->name(), entry.name, safetensors_name(entry.dtype));
      }
    }
    // The first files of GPT-2 were saved without the outermost module.
    without_root_ = naming == FolderNaming::kGpt2 && file_.try_entry("wte.weight") != nullptr;
  }

  std::string name_of(std::string_view part, std::string_view kind, int64_t layer) const override {
    const auto row = std::find_if(names_.parts.begin(), names_.parts.end(),
                                  [&](const PartName& each) { return each.part == part; });
    // Not all architectures have all parts; then nothing has this name either.
    std::string_view name = row == names_.parts.end() ? part : row->name;
    if (part == "ffn_norm" && norms_after_) name = "pre_feedforward_layernorm";
    std::string whole = layer < 0 ? fmt::format("{}.{}", name, kind)
                                  : fmt::format("{}{}.{}.{}", names_.layers, layer, name, kind);
    constexpr std::string_view kRoot = "transformer.";
    return without_root_ && whole.starts_with(kRoot) ? whole.substr(kRoot.size()) : whole;
  }

  std::optional<std::vector<int64_t>> try_shape(const std::string& name) const override {
    const SafetensorsEntry* entry = file_.try_entry(name);
    return entry == nullptr ? std::nullopt : std::optional(entry->shape);
  }

  at::Tensor read(const std::string& name) const override {
    const SafetensorsEntry& entry = *required(file_.try_entry(name), name);
    at::Tensor values = at::empty(entry.shape, at::kFloat);
    values.copy_(tensor_on_bytes(entry.bytes, entry.dtype, entry.shape, entry.owner));
    return values;
  }

  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    for (const SafetensorsEntry& entry : file_.entries()) {
      if (!is_derived(entry.name)) names.push_back(entry.name);
    }
    return names;
  }

  std::optional<int64_t> values() const override {
    std::optional<int64_t> sum = 0;
    for (const SafetensorsEntry& entry : file_.entries()) {
      const auto count = static_cast<int64_t>(entry.bytes.size() / dtype_size(entry.dtype));
      sum = sum ? checked_add(*sum, count) : sum;
    }
    return sum;
  }

 private:
  static bool is_readable(DType dtype) {
    return dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBfloat16;
  }

  SafetensorsFile file_;
  bool norms_after_;
  Names names_;
  bool without_root_ = false;
};

}  // namespace

std::unique_ptr<WeightSource> folder_weights(SafetensorsFile file, const DecoderTraits& traits,
                                             FolderNaming naming) {
  return std::make_unique<FolderWeights>(std::move(file), traits, naming);
}

}  // namespace halftone
