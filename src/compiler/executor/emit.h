// Native steps: which nodes run on Halftone's own kernels, and how they are made.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "compiler/executor/planner.h"

namespace halftone::compiler {

/// A step for the node, its outputs defined through the planner; or nullptr, nothing defined, and `reason`
/// says why not.
using Emitter = std::unique_ptr<Step> (*)(const Node& node, Planner& planner, std::string& reason);

/// nullptr if no emitter has that target.
Emitter try_emitter(std::string_view target);

// One family a file.
std::unique_ptr<Step> emit_linear(const Node& node, Planner& planner, std::string& reason);
std::unique_ptr<Step> emit_conv(const Node& node, Planner& planner, std::string& reason);
/// Pooling of all kinds, mean and amax over all pixels; of tensors with the channels last.
std::unique_ptr<Step> emit_pooling(const Node& node, Planner& planner, std::string& reason);
std::unique_ptr<Step> emit_norm(const Node& node, Planner& planner, std::string& reason);
std::unique_ptr<Step> emit_quantize_rows(const Node& node, Planner& planner, std::string& reason);
std::unique_ptr<Step> emit_attention(const Node& node, Planner& planner, std::string& reason);
std::unique_ptr<Step> emit_embedding(const Node& node, Planner& planner, std::string& reason);
std::unique_ptr<Step> emit_activation(const Node& node, Planner& planner, std::string& reason);
std::unique_ptr<Step> emit_binary(const Node& node, Planner& planner, std::string& reason);
std::unique_ptr<Step> emit_softmax(const Node& node, Planner& planner, std::string& reason);
/// `to` and the like that change the dtype; also what a view would be if the strides allowed: reshape,
/// contiguous, flatten.
std::unique_ptr<Step> emit_copy(const Node& node, Planner& planner, std::string& reason);
std::unique_ptr<Step> emit_cat(const Node& node, Planner& planner, std::string& reason);
/// Rows of a tensor that are replaced: a KV cache, which is written where it lies.
std::unique_ptr<Step> emit_index_copy(const Node& node, Planner& planner, std::string& reason);

}  // namespace halftone::compiler
