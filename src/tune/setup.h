// Shared by a tuning and its dry run: everything that is decided before the model is used.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "halftone/tune/tune.h"
#include "tune/report/cache.h"
#include "tune/samples/sample_layout.h"

namespace halftone {

struct TuningSetup {
  SampleLayout layout;
  GraphSpec spec;  ///< with the dynamic sizes of the samples
  std::vector<TuneCandidate> candidates;
  double min_cosine = 0;
  std::vector<std::string> candidate_keys() const;  ///< name and key of each
};

/// kInvalidArgument for what cannot be tuned that way.
TuningSetup set_up(const ModelSource& model, const Samples& samples, const Strategy& strategy,
                   const TuneOptions& options);

/// A backend, INACTIVE, with the model as a graph that nothing else changes: others are built like it. A
/// C++ module is captured (with what kUnsupported says if that cannot be done), and called once more for
/// each validation sample to compare, unless it keeps state.
Backend captured_backend(const ModelSource& model, const TuningSetup& setup, c10::Device device);
/// The graph of it.
std::shared_ptr<const GraphModule> capture_model(const ModelSource& model, const TuningSetup& setup,
                                                 c10::Device device);

/// tune(), of a model that captured_backend() has captured with the same samples.
TuneResult tune_captured(const Backend& captured, const ModelSource& model, const Samples& samples,
                         const Strategy& strategy, const TuneOptions& options);

CacheKey cache_key(const TuningSetup& setup, std::string model_hash, const Strategy& strategy,
                   const TuneOptions& options);

}  // namespace halftone
