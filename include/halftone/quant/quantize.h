// quantize_: quantizes the weights of a C++ module or of a captured graph in one call.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "halftone/base/api.h"
#include "halftone/base/progress.h"
#include "halftone/quant/config.h"

namespace torch::nn {
class Module;
}

namespace halftone {

class GraphModule;

/// A layer that quantize_ considers.
struct LayerInfo {
  std::string name;  ///< qualified: "encoder.layer.0.attention.query"
  /// "linear", "embedding", "conv1d" (of kernel 1: a linear); "convolution"; "parameter": no known layer's,
  /// kept
  std::string kind;
  int64_t n = 0;  ///< outputs, or rows of an embedding
  int64_t k = 0;  ///< inputs, or width of an embedding; of a convolution: weights of an output
};

/// Patterns are ECMAScript regular expressions that must match a layer's whole name. One that matches no
/// layer is an error (kInvalidArgument), and so is one that does not parse.
struct QuantizeOptions {
  std::string include;                           ///< only these layers; empty: all
  std::string exclude;                           ///< not these; empty: none
  std::function<bool(const LayerInfo&)> filter;  ///< only layers for which it is true
  int64_t min_weights = 0;                       ///< layers with fewer weights are kept
  bool embeddings = false;                       ///< also embeddings, if the config has a kernel for them
  /// For single layers, the first match counts; takes precedence over everything above. NoQuantConfig keeps
  /// the layer.
  std::vector<std::pair<std::string, QuantConfig>> overrides;
  bool dry_run = false;       ///< only the report; nothing is changed
  ProgressCallback progress;  ///< a layer a step
};

/// The outcome of one layer.
struct LayerReport {
  LayerInfo layer;
  enum class Outcome { kQuantized, kKept, kAlready } outcome = Outcome::kKept;
  std::optional<QuantConfig> config;  ///< where quantized, now or before
  std::string reason;                 ///< why it was kept
  int64_t bytes_before = 0;           ///< of the weight
  int64_t bytes_after = 0;
  bool untouched = false;  ///< kept because the config does not support it, not because of options
  /// Quantized: the earlier layer that has the same weight, whose bytes are counted there. Its quantized
  /// tensors are counted there too, unless the two have other ones.
  std::string tied_to;
  bool own_tensors = true;
};

/// Weights of one kind that stayed as they were because the config does not support them. Weights that the
/// caller excluded by options are not among them.
struct LeftAlone {
  /// "convolution", "LSTM", "GRU", "RNN", "embedding", "embedding bag", "linear", "other weight".
  std::string kind;
  size_t count = 0;   ///< layers
  int64_t bytes = 0;  ///< of their weights
  double share = 0;   ///< of the model's bytes before
  std::string help;   ///< the option that would take them; may be empty
};

struct HALFTONE_API QuantizeReport {
  std::vector<LayerReport> layers;  ///< in the model's order
  int64_t bytes_before = 0;         ///< of all parameters and buffers, tied ones once
  int64_t bytes_after = 0;
  std::vector<LeftAlone> left_alone;  ///< most bytes first
  size_t count(LayerReport::Outcome outcome) const;
  /// Warnings for the caller: most bytes were left alone, the model became
  /// larger.
  std::vector<std::string> warnings() const;
  std::string to_text() const;  ///< a table of at most 100 columns
  std::string to_json() const;
};

/// In place, on every linear of the module (torch::nn::Linear wherever it is held, MultiheadAttention's
/// projections): the weight becomes a quantized tensor and the forward code stays as it is. Layers that are
/// quantized already with the same config are skipped and listed; with another one: kInvalidArgument. Nothing
/// to quantize: kInvalidArgument. On an error the module is as it was. Changes no process-wide setting.
///
/// The weight's tensor itself is changed: every handle on it is quantized, the old storage is freed, and tied
/// weights stay tied. A layer that shares its weight with something that is kept is kept too. The weight
/// stays among the module's parameters, requires no gradient any more and loses the one it had. Its
/// operations: quantized_tensor.h.
HALFTONE_API QuantizeReport quantize_(torch::nn::Module& module, const QuantConfig& config,
                                      const QuantizeOptions& options = {});

/// The same for a graph: linears in all spellings, embeddings and convolutions of kernel 1 become halftone::*
/// operators on plain integer tensors. If the config has_convolution() (int8wo), other convolutions stay
/// and read a weight that halftone::restore_int8_weight makes of integers. Weights that nothing else uses
/// leave the graph.
HALFTONE_API QuantizeReport quantize_(GraphModule& module, const QuantConfig& config,
                                      const QuantizeOptions& options = {});

}  // namespace halftone
