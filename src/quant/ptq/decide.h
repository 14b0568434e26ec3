// Whether and how a matched pattern is quantized: its qconfig, and the dtype config that takes it.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "halftone/ptq/qconfig.h"
#include "quant/ptq/match.h"

namespace halftone::ptq {

bool is_quantized_dtype(ConfigDType dtype);  ///< 8 bits or fewer, with a scale

/// The qconfig of each operation, in torch.ao's order of strength. Nothing: not quantized.
std::unordered_map<const FusedOp*, QConfigMapping::Value> qconfigs_of(const FusedOpGraph& fused_ops,
                                                                      const QConfigMapping& mapping);

/// By the number of its operands that are tensors, where the config says so.
ObservationType observation_type_of(const PatternMatch& match);

/// "" where one of the pattern's dtype configs takes the qconfig; else why none does. `weighted`: the match
/// has a weight that may be quantized.
std::string reason_against(const BackendPatternConfig& config, const QConfig& qconfig, bool weighted);

}  // namespace halftone::ptq
