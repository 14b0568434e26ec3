// The cost of quantizing each layer of a graph: errors of its weight, of its output and of the model's
// result.
#pragma once

#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

#include "halftone/base/api.h"
#include "halftone/graph/graph_module.h"
#include "halftone/quant/quantize.h"

namespace halftone {

/// The difference of two sets of numbers, over the elements that are finite in both; the others are
/// counted: NaN for NaN and infinity for the same infinity are equal, anything else differs.
struct ErrorMeasure {
  double snr_db = 0;  ///< 10·log10(Σx² / Σ(x−y)²); infinity if they are equal
  double cosine = 1;
  double max_error = 0;              ///< largest |x−y|
  int64_t finite = 0;                ///< elements that these are over
  int64_t same_not_finite = 0;       ///< NaN or infinite, and the same in both
  int64_t differing_not_finite = 0;  ///< NaN or infinite in one, and something else in the other
  /// Nothing differs at all.
  bool is_exact() const { return differing_not_finite == 0 && max_error == 0; }
};

/// Of two tensors with the same sizes, whatever their types.
HALFTONE_API ErrorMeasure compare_tensors(const at::Tensor& expected, const at::Tensor& got);
/// kUnsupported if two answers to the same call, `first` and `second` (all their tensors), differ by more
/// than rounding: nothing can be compared with such a model.
HALFTONE_API void require_same_answers(const GraphModule& module, const std::vector<at::Tensor>& first,
                                       const std::vector<at::Tensor>& second);

struct LayerDiagnosis {
  LayerInfo layer;
  QuantConfig config;
  ErrorMeasure weight;  ///< dequantized against as it is
  ErrorMeasure output;  ///< of the layer, on the inputs it has in the unquantized model
  ErrorMeasure result;  ///< of the model, where this layer alone is quantized
  double share = 0;     ///< of the noise that all layers, each alone, bring into the result: they add up to 1
};

struct Diagnosis {
  std::vector<LayerDiagnosis> layers;  ///< the most harmful first: by share, then by weight.snr_db
  ErrorMeasure result;                 ///< of the model with all of them quantized
};

/// Examines the layers that quantize_(module, config, options) would quantize; refuses as it does. `calls`:
/// the inputs of one call each, made in this order to one session. The whole model runs once for each layer,
/// and three times more: kUnsupported if it gives two answers
/// to one call (it draws random numbers). The floating-point results of all calls count together. Changes
/// neither the module nor the inputs. options.progress: a run a step.
HALFTONE_API Diagnosis diagnose(const GraphModule& module, const QuantConfig& config,
                                const std::vector<std::vector<c10::IValue>>& calls,
                                const QuantizeOptions& options = {});

}  // namespace halftone
