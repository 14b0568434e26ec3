// Weights from safetensors files, under the names that transformers gives them.
#include <ATen/ops/empty.h>

#include <algorithm>

#include "base/checked.h"
#include "base/errors.h"
#include "decoder/source/weight_source.h"
#include "graph/aten/dtypes.h"

namespace halftone {

namespace {

struct PartName {
  std::string_view part, name;
};

constexpr PartName kPartNames[] = {{"token_embd", "model.embed_tokens"},
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

class FolderWeights final : public WeightSource {
 public:
  FolderWeights(SafetensorsFile file, bool norms_after) : file_(std::move(file)), norms_after_(norms_after) {
    for (const SafetensorsEntry& entry : file_.entries()) {
      if (!is_readable(entry.dtype)) {
        fail(ErrorCode::kUnsupported, "{}: tensor \"{}\" is {}; weights are read as F32, F16 or BF16",
             entry.owner->name(), entry.name, safetensors_name(entry.dtype));
      }
    }
  }

  std::string name_of(std::string_view part, std::string_view kind, int64_t layer) const override {
    const auto* const row = std::find_if(std::begin(kPartNames), std::end(kPartNames),
                                         [&](const PartName& each) { return each.part == part; });
    if (row == std::end(kPartNames)) fail(ErrorCode::kInternal, "there is no part {}", part);
    const std::string_view name =
        part == "ffn_norm" && norms_after_ ? "pre_feedforward_layernorm" : row->name;
    return layer < 0 ? fmt::format("{}.{}", name, kind)
                     : fmt::format("model.layers.{}.{}.{}", layer, name, kind);
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
      // A table that follows from the config; old versions stored it.
      if (!entry.name.ends_with(".rotary_emb.inv_freq")) names.push_back(entry.name);
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
};

}  // namespace

std::unique_ptr<WeightSource> folder_weights(SafetensorsFile file, bool norms_after) {
  return std::make_unique<FolderWeights>(std::move(file), norms_after);
}

}  // namespace halftone
