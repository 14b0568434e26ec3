// The plan of autoquant: its decision for each layer, with reasons, as a file that can be edited and
// replayed. docs/autoquant.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "halftone/base/api.h"
#include "halftone/quant/config.h"
#include "halftone/quant/quantize.h"

namespace halftone {

/// A scheme that was looked at for a layer. "fp32": the layer as it is, on Halftone's own kernels.
struct AutoquantCandidate {
  std::string scheme;  ///< as in autoquant_schemes()
  /// Of one call of the model, mean over the shapes by how often each is seen.
  std::optional<double> milliseconds;
  /// 1 - cosine of the layer's output to fp32's, on recorded activations, the worst.
  std::optional<double> error;
  std::string note;  ///< why it was refused; empty: it may be chosen
  bool operator==(const AutoquantCandidate&) const = default;
};

/// Activations that calibration saw at a layer's input.
struct AutoquantShape {
  std::vector<int64_t> sizes;
  std::string dtype;  ///< "f32"
  int64_t calls = 0;
  bool operator==(const AutoquantShape&) const = default;
};

struct AutoquantLayer {
  std::string name;  ///< qualified
  std::string kind;  ///< as LayerInfo::kind
  int64_t n = 0;
  int64_t k = 0;
  std::vector<std::string> together;   ///< others that read the same input: measured, decided and run as one
  std::vector<AutoquantShape> shapes;  ///< empty: calibration did not see the layer, and it stays as it is
  std::vector<AutoquantCandidate> candidates;
  std::string choice;  ///< a scheme
  /// "fastest of 7 within the layer's bound", "given back: …", "not seen in calibration".
  std::string reason;
  bool operator==(const AutoquantLayer&) const = default;
};

/// A way to quantize the whole model that was measured beside the others at the end, in turns.
struct AutoquantRun {
  std::string name;         ///< "plan", "fp32", "all int8dq-7bit"
  double milliseconds = 0;  ///< as AutoquantCandidate::milliseconds
  double relative = 0;      ///< to fp32, median of ratios round by round
  double min_cosine = 0;    ///< of the model's results to fp32's on held-out samples
  bool holds = false;       ///< the accuracy budget
  bool chosen = false;
  double relative_low = 0;   ///< of `relative`'s interval (95 %); 0: not known, it needs six rounds
  double relative_high = 0;  ///< as relative_low
  int64_t rounds = 0;        ///< the fewest at a shape; undisturbed ones
  bool operator==(const AutoquantRun&) const = default;
};

struct HALFTONE_API AutoquantPlan {
  std::string model;
  std::string model_hash;  ///< SHA-256 of graph and tensors as they were before
  std::string cpu, isa;
  int threads = 0;
  std::string version;                 ///< of Halftone
  std::string measured_at;             ///< UTC
  double min_cosine = 0;               ///< asked for, of the model
  double min_layer_cosine = 0;         ///< asked for, of a layer
  double cosine = 0;                   ///< reached by the model on held-out samples, the least
  std::vector<AutoquantLayer> layers;  ///< in the model's order
  std::vector<AutoquantRun> runs;
  double seconds = 0;  ///< that planning took when it was measured
  std::vector<std::string> notes;
  bool operator==(const AutoquantPlan&) const = default;

  /// A config for each layer that has a choice other than fp32, as patterns for QuantizeOptions::overrides.
  std::vector<std::pair<std::string, QuantConfig>> overrides() const;
  bool quantizes() const;  ///< any layer at all
  /// A table of at most 100 columns, the runs and the notes.
  std::string to_text() const;
  std::string to_json() const;  ///< indented
  /// Written by to_json(), or edited by hand: a "choice" may be any of autoquant_schemes(), and everything
  /// but "layers" with "name" and "choice" may be left out. kCorruptFile, with `file` and the place
  /// ("layers[3].choice"), for unknown keys, schemes (with the nearest), wrong types and a layer twice.
  static AutoquantPlan from_json(std::string_view json, std::string_view file);
};

HALFTONE_API AutoquantPlan read_autoquant_plan(const std::string& path);
HALFTONE_API void write_autoquant_plan(const std::string& path, const AutoquantPlan& plan);  ///< atomically

/// A name that a plan may hold, and what it does; "fp32" has no config.
struct AutoquantScheme {
  std::string name;
  std::optional<QuantConfig> config;
};
/// "fp32" and those of schemes(), by their short names.
HALFTONE_API const std::vector<AutoquantScheme>& autoquant_schemes();
/// By any name that QuantConfig takes; `name` of what comes back is the short one. Throws as QuantConfig
/// does.
HALFTONE_API const AutoquantScheme& autoquant_scheme(std::string_view name);

class GraphModule;

/// Quantizes as the plan says, without measuring. kInvalidArgument, naming the layer, if the model has no
/// such layer, if it has other sizes, and if a scheme refuses it; the model is as it was then. Layers
/// that the plan does not name stay as they are. The same model and plan give the same bytes.
HALFTONE_API QuantizeReport apply_plan(GraphModule& module, const AutoquantPlan& plan);
HALFTONE_API QuantizeReport apply_plan(torch::nn::Module& module, const AutoquantPlan& plan);

}  // namespace halftone
