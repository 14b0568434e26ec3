// lower: a reference graph, float operators between quantize and dequantize, becomes a graph of int8
// operators. docs/backend_config.md.
//
//   const LowerResult lowered = lower(*convert(prepared).module);
//   lowered.report.to_text();                 // what runs in int8, and what does not and why
//   const auto model = compile(lowered.module);
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "halftone/base/api.h"
#include "halftone/graph/graph_module.h"

namespace halftone {

/// A float operator that stays between quantize and dequantize.
struct KeptInFloat {
  std::string node;    ///< the name of its first result
  std::string target;  ///< "aten::layer_norm"
  std::string layer;   ///< "" if the graph does not say
  std::string reason;
};

struct HALFTONE_API LowerReport {
  std::map<std::string, size_t> operators;  ///< int8 operators of the lowered graph, by target
  std::vector<KeptInFloat> kept;            ///< in order of execution; empty: nothing stayed
  std::string to_text() const;              ///< a line for each kind of operator, then one for each kept node
};

struct LowerOptions {
  /// A node that stays float is an error (kUnsupported, listing all of them) instead of a line of the report.
  bool require_all = false;
};

struct LowerResult {
  std::shared_ptr<GraphModule> module;
  LowerReport report;
};

/// Takes what convert() makes; the given module stays as it was, tensors are shared. Inputs and outputs stay
/// float: one quantize_per_tensor at the start, one dequantize_per_tensor at the end (a last linear without
/// an observed output writes floats itself).
///
/// Results are those of the reference graph but for the rounding of sums: int8 products are exact where the
/// reference adds floats, so an element on the border between two quantized values may fall to the other
/// side. Operators of one element in and one out (activations, requantization) become tables and give the
/// same bytes, and so do max pooling and operators that only move elements.
///
/// Four- and five-dimensional quantized values are channels last in memory. Outputs of the model keep the
/// strides they had.
HALFTONE_API LowerResult lower(const GraphModule& module, const LowerOptions& options = {});

}  // namespace halftone
