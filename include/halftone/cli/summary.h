// Unstable: for the command line only, may change in any version.
// Summary of a model, as `halftone inspect` shows it: layers, totals, inputs and outputs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "halftone/base/api.h"
#include "halftone/graph/graph_module.h"

namespace halftone {

/// The nodes that come from one layer of the model's source.
struct LayerSummary {
  std::string layer;        ///< qualified name; empty: nodes that no layer is known for
  std::string module_type;  ///< of the source, such as "torch.nn.modules.linear.Linear"
  std::string ops;          ///< "linear", "linear ×3, relu", without namespaces and overloads
  /// Of the first tensor that comes from outside the layer: "f32[s0, 3]"; may be empty.
  std::string input_shape;
  std::string output_shape;  ///< of the last tensor that the layer gives away
  /// Elements of the parameters it uses; a tied one counts in each of its layers. A quantized weight has as
  /// many as before.
  int64_t parameters = 0;
  int64_t parameter_bytes = 0;
  size_t nodes = 0;         ///< those of subgraphs too
  std::string quantizable;  ///< "linear", "conv", "embedding" where a floating-point parameter is such a
                            ///< weight; else empty
};

/// A dimension that is not fixed. `range` is known where its size is one symbol.
struct DynamicDimension {
  size_t dimension = 0;
  std::string size;  ///< "s0", "2*s0"
  std::optional<SymbolRange> range;
};

struct InputSummary {
  std::string name;
  /// "f32"; the type's name for inputs that are not tensors; "tensor" if nothing more is known.
  std::string dtype;
  std::string sizes;  ///< "[s0, 3]"; empty for inputs that are not tensors
  std::vector<DynamicDimension> dynamic;
};

struct OutputSummary {
  std::string path;  ///< place in the nested result: "[0]['logits']"; empty if the result is one tensor
  std::string dtype;
  std::string sizes;
};

struct ModelSummary {
  std::vector<LayerSummary> layers;  ///< in order of first appearance
  std::vector<InputSummary> inputs;
  std::vector<OutputSummary> outputs;  ///< what the caller gets, without mutations
  size_t nodes = 0;
  /// Elements, of quantized weights those of before; names that share memory count once.
  int64_t parameters = 0;
  int64_t parameter_bytes = 0;
  int64_t buffers = 0;
  int64_t buffer_bytes = 0;
  int64_t constants = 0;
  int64_t constant_bytes = 0;
  size_t tied_parameters = 0;  ///< names that stand for the memory of another one
};

HALFTONE_API ModelSummary summarize(const GraphModule& module);

/// "[s0, 3]"
HALFTONE_API std::string format_sizes(const std::vector<SymExpr>& sizes);
/// "f32[s0, 3]"; the type's name for values that are not tensors or whose shape is not known.
HALFTONE_API std::string format_shape(const Value& value);
/// "2…1024", "2…" if there is no upper bound.
HALFTONE_API std::string format_range(const SymbolRange& range);

}  // namespace halftone
