#include "decoder/decoder_scheme.h"

#include "base/scheme_table.h"
#include "halftone/decoder/generate.h"
#include "quant/graph/quantize_graph.h"

namespace halftone {

DecoderScheme::DecoderScheme(const std::string& name) {
  const NamedScheme found = named_scheme(name);
  if (found.entry->kind != SchemeKind::kFile) {
    config_ = QuantConfig(name);
  } else if (found.entry->names[0] == "file-int8act") {
    activations_ = Int4Activations::kInt8;
  }
}

std::optional<QuantizeReport> DecoderScheme::apply(GraphModule& module) const {
  if (config_ && config_->is_noquant()) return std::nullopt;
  QuantizeOptions options{.embeddings = true};
  options.filter = [](const LayerInfo& layer) {
    return layer.name.find("rotary_") == std::string::npos && !layer.name.ends_with("embed_positions");
  };
  if (config_) return quantize_(module, *config_, options);
  return quantize_keeping_levels(module, activations_, Bf16WeightOnlyConfig{}, options);
}

void require_decoder_scheme(const std::string& name) {
  [[maybe_unused]] const DecoderScheme scheme(name);
}

}  // namespace halftone
