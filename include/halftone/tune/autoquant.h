// Autoquant: measures which scheme is fastest for each layer on this machine, and takes it where the answers
// stay right. docs/autoquant.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "halftone/backend/backend.h"
#include "halftone/backend/recipes.h"
#include "halftone/base/api.h"
#include "halftone/base/progress.h"
#include "halftone/graph/sample.h"
#include "halftone/tune/autoquant_plan.h"
#include "halftone/tune/samples.h"

namespace halftone {

struct AutoquantOptions {
  /// Names of autoquant_schemes() to try; fp32 is always among them. Empty: default_autoquant_schemes().
  std::vector<std::string> schemes;
  double min_layer_cosine = 0.98;  ///< of a layer's output on what calibration recorded
  double min_cosine = 0.995;       ///< of the model's results on held-out samples; 0: no budget
  /// Seconds for everything. When they are over, the best plan that is known to hold the budget is the result
  /// (fp32 at worst), and a note says so.
  double time_limit = 60;
  /// A layer that calibration did not see: true: kInvalidArgument, listing them; false: it stays as it is and
  /// the plan says so.
  bool error_on_unseen = true;
  /// Measure the whole model at the end, beside fp32 and the best single schemes, and take the fastest.
  /// Without it the plan is only the sum of its layers.
  bool final_comparison = true;
  std::string include;    ///< as in QuantizeOptions: only these layers
  std::string exclude;    ///< not these
  std::string cache_dir;  ///< of measurements, on disk; empty: in this process's memory only
  bool use_cache = true;  ///< false: measures anew, and remembers that
  uint64_t seed = 0;      ///< of made-up samples
  GraphSpec spec;         ///< of a C++ module
  ProgressCallback progress;
};

/// int8wo, int8dq, int8dq-7bit, int4wo, int4wo-int8act, bf16wo, fp8wo.
HALFTONE_API std::vector<std::string> default_autoquant_schemes();

/// Manual mode: marks the layers, records what it is called with, and decides at finalize(). Changes no
/// process-wide setting. Not for several threads at a time.
class HALFTONE_API Autoquant {
 public:
  /// kInvalidArgument "NotAutoquantizable: found no autoquantizable layers in model <type>" if there is
  /// none.
  explicit Autoquant(ModelSource model, AutoquantOptions options = {});
  ~Autoquant();
  Autoquant(Autoquant&&) noexcept;
  Autoquant& operator=(Autoquant&&) noexcept;

  const std::vector<LayerInfo>& marked() const;
  /// What is known of the samples beside the calls: held-out ones, the batch, dynamic sizes of a C++ module.
  /// Its calls are not made. Without it, the last fifth of the kept calls is held out.
  void expect(const Samples& samples);
  /// One call of the model, positional and by name, with its result. kState after finalize().
  c10::IValue calibrate(const Sample& sample);
  /// Measures and decides; the model is left as it is. kState without a calibration.
  AutoquantPlan plan();
  /// plan(), and the model is quantized in place as it says.
  AutoquantPlan finalize();

 private:
  friend AutoquantPlan plan_autoquant(const ModelSource& model, const Samples& samples,
                                      const AutoquantOptions& options);
  struct State;
  std::unique_ptr<State> state_;
};

/// Calibrates with every call of `samples` (those of a captured graph if there are none), plans, quantizes
/// in place.
HALFTONE_API AutoquantPlan autoquant(const ModelSource& model, const Samples& samples = {},
                                     const AutoquantOptions& options = {});
/// The same, and the model is left as it is.
HALFTONE_API AutoquantPlan plan_autoquant(const ModelSource& model, const Samples& samples = {},
                                          const AutoquantOptions& options = {});

/// What was measured on this machine, in this process and in `cache_dir`.
struct AutoquantCacheEntry {
  std::string problem;  ///< what was measured: layers, neighbours, activation shape and type
  std::string scheme;
  std::string machine;  ///< CPU, instruction set, threads, versions
  double milliseconds = 0;
  bool operator==(const AutoquantCacheEntry&) const = default;
};
HALFTONE_API std::vector<AutoquantCacheEntry> autoquant_cache(const std::string& cache_dir = {});
/// In memory and, where it is named, on disk. Returns how many entries there were.
HALFTONE_API size_t clear_autoquant_cache(const std::string& cache_dir = {});

/// The plan of the samples that it is built with, as a backend: a candidate of tune(). A model that is
/// quantized already (from a file) is taken as it is. "AutoquantBackend".
struct AutoquantBackendConfig {
  std::vector<std::string> schemes;  ///< empty: default_autoquant_schemes()
  double min_cosine = 0.995;
  double time_limit = 30;
  bool final_comparison = true;
};
HALFTONE_API std::shared_ptr<const BackendRecipe> autoquant_backend_recipe(
    const AutoquantBackendConfig& config = {});

}  // namespace halftone
