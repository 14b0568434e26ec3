// Native steps of static int8 graphs: the operators of quant/static_int8, and the quantize and dequantize at
// their edges.
#pragma once

#include "compiler/executor/channels_last.h"
#include "compiler/executor/emit.h"

namespace halftone::compiler {

/// nullptr if no emitter has that target.
Emitter try_int8_emitter(std::string_view target);

// One family a file.
std::unique_ptr<Step> emit_int8_conv(const Node& node, Planner& planner, std::string& reason);
std::unique_ptr<Step> emit_int8_linear(const Node& node, Planner& planner, std::string& reason);
std::unique_ptr<Step> emit_int8_binary(const Node& node, Planner& planner, std::string& reason);
std::unique_ptr<Step> emit_int8_lookup(const Node& node, Planner& planner, std::string& reason);
std::unique_ptr<Step> emit_int8_quantize(const Node& node, Planner& planner, std::string& reason);
std::unique_ptr<Step> emit_int8_dequantize(const Node& node, Planner& planner, std::string& reason);
std::unique_ptr<Step> emit_int8_channels_last(const Node& node, Planner& planner, std::string& reason);
std::unique_ptr<Step> emit_int8_cat(const Node& node, Planner& planner, std::string& reason);

/// A batch of images of bytes, channels and one to three dimensions of pixels.
inline bool is_channels_last_bytes(const Slot* slot) {
  return slot != nullptr && slot->dtype() == at::kByte && slot->meta.dim() >= 3 && slot->meta.dim() <= 5;
}

}  // namespace halftone::compiler
