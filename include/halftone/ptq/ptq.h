// Post-training quantization with a BackendConfig: fuse, prepare, calibrate, convert. Follows
// torch.ao.quantization.quantize_fx; scales and zero points are its numbers. docs/backend_config.md.
//
//   auto prepared = prepare(*module, default_qconfig_mapping("x86"), example, builtin_backend_config("x86"));
//   for (const auto& sample : samples) prepared.calibrate(sample);
//   // result.module has explicit quantize and dequantize nodes:
//   const ConvertResult result = convert(prepared);
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "halftone/base/api.h"
#include "halftone/graph/graph_module.h"
#include "halftone/ptq/backend_config.h"
#include "halftone/ptq/observer.h"
#include "halftone/ptq/qconfig.h"

namespace halftone {

/// Operators of reference graphs; the interpreter runs them. Quantized values are plain uint8 or int8
/// tensors, dense in the floats' memory format (row-major or channels last); NaN is quantized to quant_max.
///   halftone::quantize_per_tensor(Tensor x, float scale, int zero_point, int quant_min, int quant_max,
///                                 ScalarType dtype) -> Tensor
///       q = clamp(nearest_even(x · (1 / scale) + zero_point), quant_min, quant_max), in float32
///   halftone::dequantize_per_tensor(Tensor q, float scale, int zero_point) -> Tensor
///       (q - zero_point) · scale
///   halftone::dequantize_per_channel(Tensor q, Tensor scales, Tensor zero_points, int axis) -> Tensor
///       of weights: constants of the module; zero_points int32, or float32 for embeddings
///   halftone::quantize_dequantize_dynamic(Tensor x, ScalarType dtype, bool reduce_range=False) -> Tensor
///       scale and zero point from the smallest and largest element of the call; x itself if one of them is
///       not finite
/// Weights are int8 (or uint8) parameters before dequantize_per_channel or dequantize_per_tensor; activations
/// are quantize_per_tensor → dequantize_per_tensor pairs.

/// One group of nodes that a pattern of the backend config matched.
struct MatchedPattern {
  std::string pattern;             ///< Pattern::to_text()
  std::string layer;               ///< of the operation that gives the group its name: "layer1.0.conv1"
  std::vector<std::string> nodes;  ///< names of their results in the prepared graph, in order of execution
  bool quantized = false;
  std::string reason;  ///< why it stays float, or ""
};

/// A value with a scale: an activation, or a weight (with one scale a channel).
struct QuantizedValueInfo {
  std::string value;  ///< name in the prepared graph; of a weight: the name of its tensor
  std::string layer;
  bool is_weight = false;
  ObserverConfig observer;
  QParams qparams;
  std::vector<size_t> patterns;  ///< the matches that read or make it, as indices of PtqReport::patterns
};

/// An operation that stays float.
struct FloatOperation {
  std::string node, op, layer;
  std::string reason;
};

struct HALFTONE_API PtqReport {
  std::vector<MatchedPattern> patterns;    ///< in order of execution
  std::vector<QuantizedValueInfo> values;  ///< what a dynamic scheme quantizes at run time is not among them
  std::vector<FloatOperation> float_operations;
  std::vector<std::string> folded;  ///< layers of the batch norms that fuse() folded
  size_t quantized() const;         ///< how many patterns are
  std::string to_json() const;
  /// Quantized patterns by type with their number and layers, then what stayed float and why.
  std::string to_text() const;
};

/// A copy with batch norms folded into the convolutions and linears before them, where a pattern of the
/// config has a fuser method for it: W · s and (b - mean) · s + beta, s = gamma / sqrt(variance + eps), in
/// torch.ao's order of operations. `folded`: names of their layers are appended, where given.
HALFTONE_API std::shared_ptr<GraphModule> fuse(const GraphModule& module, const BackendConfig& config,
                                               std::vector<std::string>* folded = nullptr);

struct PtqState;

/// A fused copy of the model, the patterns found in it, and an observer for each value that they quantize.
/// Not for several threads at a time. Movable.
class HALFTONE_API PreparedModel {
 public:
  PreparedModel(PreparedModel&&) noexcept;
  PreparedModel& operator=(PreparedModel&&) noexcept;
  ~PreparedModel();

  /// Runs the model on flat inputs, in the order of input_names(), and shows its values to the observers.
  /// Gives the model's outputs. NaN in an observed value: kInvalidArgument, naming value and layer; the
  /// observers have then seen a part of the sample.
  std::vector<c10::IValue> calibrate(const std::vector<c10::IValue>& inputs);
  int64_t samples() const;

  const GraphModule& module() const;                                         ///< float, fused
  const std::vector<MatchedPattern>& patterns() const { return patterns_; }  ///< in order of execution
  /// What was observed: {"samples": …, "values": {name: statistics}}.
  std::string statistics_json() const;
  /// Takes statistics of the same model, also of other schemes: they are used with this model's own. Values
  /// that have none here are ignored; a value without statistics is kInvalidArgument with its name.
  void load_statistics(std::string_view json);

 private:
  friend PreparedModel prepare(const GraphModule&, const QConfigMapping&, const std::vector<c10::IValue>&,
                               const BackendConfig&);
  friend struct PtqAccess;
  explicit PreparedModel(std::unique_ptr<PtqState> state);
  std::unique_ptr<PtqState> state_;
  std::vector<MatchedPattern> patterns_;
};

/// Fuses a copy, finds patterns (from the outputs backwards, those with more operations first), and decides
/// for each by qconfig and dtype configs. `example_inputs`: flat, run once; not shown to observers.
/// kInvalidArgument if nothing matches, if a pattern has an operator that does not exist, and if no
/// dtype config of any match takes its qconfig.
HALFTONE_API PreparedModel prepare(const GraphModule& module, const QConfigMapping& mapping,
                                   const std::vector<c10::IValue>& example_inputs,
                                   const BackendConfig& config = builtin_backend_config("native"));

struct ConvertOptions {
  /// torch.ao quantizes to all 8 bits also if a scheme has fewer (reduce_range): values beyond the
  /// observed range then lose less, but kernels cannot rely on the range. For comparisons with
  /// it.
  bool whole_dtype = false;
};

struct ConvertResult {
  std::shared_ptr<GraphModule> module;
  PtqReport report;
};

/// The reference graph. kState, naming value and layer, if an observer has seen nothing;
/// kInvalidArgument if nothing is quantized. The prepared model stays as it is.
HALFTONE_API ConvertResult convert(const PreparedModel& prepared, const ConvertOptions& options = {});

}  // namespace halftone
