// Tuning by parts: which submodules are worth it, a scheme for each of them, and a module that tunes itself
// from the calls it gets.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "halftone/base/api.h"
#include "halftone/tune/tune.h"

namespace halftone {

struct SubmoduleReport {
  std::string name;   ///< a prefix of its layers' names; "": nodes of no layer
  size_t layers = 0;  ///< with weights that can be quantized
  int64_t parameters = 0;
  int64_t bytes = 0;
  double milliseconds = 0;  ///< of one call, in the interpreter
  double share = 0;         ///< of the whole call
  bool worth = false;
  std::string reason;  ///< why it is worth tuning, or not
};

struct HALFTONE_API InspectReport {
  std::string model;
  int depth = 0;  ///< parts of a submodule's name
  double milliseconds = 0;
  std::vector<SubmoduleReport> submodules;  ///< in the model's order
  std::string to_text() const;
  std::string to_json() const;
};

struct InspectOptions {
  int depth = 0;            ///< 0: the least one at which no submodule has more than half of the time, if any
  double min_share = 0.05;  ///< of the time: less is not worth it
  double seconds = 2;
};

/// Runs the graph on the first sample and adds up the time of the nodes below each submodule.
HALFTONE_API InspectReport inspect(const std::shared_ptr<const GraphModule>& module,
                                   const Samples& samples = {}, const InspectOptions& options = {});

/// A config for each of some layers, the others as they are: patterns as in QuantizeOptions, the first match
/// counts. "LayerwiseBackend", {"overrides":[["encoder\\.layer\\.0\\..*",{"type":…}],…]}.
using LayerwiseConfig = std::vector<std::pair<std::string, QuantConfig>>;
HALFTONE_API std::shared_ptr<const BackendRecipe> layerwise_backend_recipe(const LayerwiseConfig& overrides);

struct SubmoduleTuneOptions {
  InspectOptions inspect;
  std::vector<QuantConfig>
      configs;  ///< to try on each; empty: int8wo, int8dq with 7-bit and 8-bit weights, int4wo
};
struct SubmoduleTuneResult {
  TuneResult result;  ///< of eager, fp32 and "per-submodule"
  InspectReport inspected;
  LayerwiseConfig chosen;  ///< one entry for each submodule that is faster with a scheme
};
/// Submodules in the order of their share of the time; each gets the config with which the *whole* model is
/// fastest among those that keep it valid, or stays as it is. The result is measured and validated as tune()
/// does it.
HALFTONE_API SubmoduleTuneResult tune_submodules(const ModelSource& model, const Samples& samples,
                                                 const Strategy& strategy = max_throughput(),
                                                 const TuneOptions& options = {},
                                                 const SubmoduleTuneOptions& submodules = {});

struct WrapOptions {
  size_t max_samples = 32;
  size_t max_per_shape = 4;
};

/// A module that is called as before, and remembers its calls until it is tuned with them. Copies share
/// everything. Thread-safe as far as the module is. Calls while tune() runs are eager; they wait for the
/// capture, with which it begins.
class HALFTONE_API TunableModule {
 public:
  c10::IValue operator()(const std::vector<c10::IValue>& args) const;
  bool is_tuned() const;
  std::vector<Sample> samples() const;
  /// With the calls so far (kState if there was none). Later calls run what was chosen. May be called
  /// again, then with the same calls.
  TuneReport tune(const Strategy& strategy = max_throughput(), const TuneOptions& options = {}) const;
  /// Back to eager; recorded calls are kept.
  void reset() const;

 private:
  friend TunableModule wrap(std::shared_ptr<torch::nn::Module>, ForwardFunction, WrapOptions);
  struct State;
  explicit TunableModule(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

HALFTONE_API TunableModule wrap(std::shared_ptr<torch::nn::Module> module, ForwardFunction forward,
                                WrapOptions options = {});

}  // namespace halftone
