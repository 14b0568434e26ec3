// The rewrites that lower() is made of. One a file; each takes a reference graph that the ones before it have
// changed already, and leaves a graph that the interpreter runs.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/rewrite/edit.h"
#include "graph/rewrite/layout.h"
#include "halftone/graph/graph_module.h"
#include "quant/static_int8/qparams.h"

namespace halftone::static_int8 {

/// Borrowed for the run of the rewrites.
struct LowerContext {
  Graph& graph;
  TensorMap& constants;  ///< of the graph's inputs that no call changes; new ones go here
  std::unordered_map<const Node*, std::string> reasons = {};  ///< why a node stays float
  std::unordered_map<std::string, int> suffixes = {};         ///< of new constants, by hint: the next to try

  /// Keeps the first reason that a node got.
  template <typename... Args>
  void refuse(const Node& node, fmt::format_string<Args...> format, Args&&... args) {
    reasons.try_emplace(&node, fmt::format(format, std::forward<Args>(args)...));
  }
  /// A new input of the graph, named after `hint`.
  Value* add_constant(const std::string& hint, at::Tensor tensor);
};

/// True if something changed. Nodes without users may be left behind.
using LowerRewrite = bool (*)(LowerContext&);

/// dequantize → what moves elements  ⇒  the same on integers → dequantize
bool rewrite_sink_dequantize(LowerContext& context);
/// dequantize → quantize with the same scale and zero point  ⇒  nothing
bool rewrite_cancel_pairs(LowerContext& context);
/// dequantize → convolution or linear (→ add a dequantized value) (→ relu, clamp) → quantize
///   ⇒  halftone::int8_conv or int8_static_linear; without quantize they write floats
bool rewrite_products(LowerContext& context);
/// dequantize → batch norm of images (→ relu, clamp) → quantize  ⇒  halftone::int8_conv of one weight a
/// channel
bool rewrite_norm(LowerContext& context);
/// two dequantize → add or mul (→ relu, clamp) → quantize  ⇒  halftone::int8_add, int8_mul
bool rewrite_binary(LowerContext& context);
/// dequantize → average pooling, mean over pixels → quantize  ⇒  halftone::int8_avg_pool
bool rewrite_pooling(LowerContext& context);
/// several dequantize of different scales → cat → quantize  ⇒  halftone::int8_cat
bool rewrite_cat(LowerContext& context);
/// dequantize → linear interpolation → quantize  ⇒  halftone::int8_interpolate
bool rewrite_interpolate(LowerContext& context);
/// dequantize → functions of one element → quantize  ⇒  halftone::int8_lookup
bool rewrite_lookup(LowerContext& context);
/// Operators that ask for contiguous memory (view) get a form that does not; results of the graph keep their
/// strides. Must be the last.
bool rewrite_fix_strides(LowerContext& context);

// Shared by the rewrites.

/// What follows a float: an optional relu, relu6, hardtanh or clamp, then quantize nodes that all have the
/// same parameters.
struct QuantizedEpilogue {
  std::vector<Node*> quantize;  ///< at least one
  Quantized quantized;          ///< with least and largest as the clamp leaves them
};
/// Nothing if the float, or what the clamp makes of it, is read by anything else; `why` says what.
std::optional<QuantizedEpilogue> try_quantized_epilogue(const Value* value, std::string& why);

/// insert_for() for the results of the epilogue's quantize nodes. Results of three and more dimensions are
/// channels last.
Node* replace_epilogue(const QuantizedEpilogue& epilogue, std::string_view target,
                       std::vector<NamedArgument> inputs, const Source& source);
/// scale, zero point and range as the arguments that all int8 operators end with.
void append_output(std::vector<NamedArgument>& inputs, const Quantized& quantized);
}  // namespace halftone::static_int8
