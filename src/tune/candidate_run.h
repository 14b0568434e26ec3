// A candidate that takes part: built, called from the state of a new session, and its row of the report.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "halftone/tune/measure.h"
#include "halftone/tune/tune.h"

namespace halftone {

class CandidateRun {
 public:
  explicit CandidateRun(TuneCandidate candidate);

  /// Converts and compiles, and notes what that took. What prepare() throws is thrown.
  void build(const std::shared_ptr<const GraphModule>& original, const std::vector<Sample>& samples,
             const std::string& cache_dir);
  bool is_built() const { return session_ != nullptr; }
  /// Frees the model; the row stays.
  void release();
  /// What build() made, and frees the rest; nothing where it is not built.
  std::optional<ReadyModel> take_ready();

  /// The answer of a new session; if the model has state, also that of a second call in it, which shows
  /// what the first one wrote.
  std::vector<c10::IValue> answers(const Sample& sample);
  /// kUnsupported if `sample` is answered otherwise than by `answers` before: the model draws random
  /// numbers.
  void require_same_again(const GraphModule& graph, const Sample& sample,
                          const std::vector<c10::IValue>& answers);
  /// Runs `sample`, which must outlive the candidate, as must this.
  TimedCandidate timed_candidate(const Sample& sample);

  /// Runs every sample and fills in the row's accuracy; the first one after what a first call costs.
  void validate(const std::vector<Sample>& samples, const std::vector<std::vector<c10::IValue>>& expected,
                const TuneMetric& metric);
  /// Of one call: seconds of the last validated sample.
  double call_seconds() const { return call_seconds_; }

  const BackendRecipe& recipe() const { return *candidate_.recipe; }
  CandidateReport row;

 private:
  c10::IValue call(const Sample& sample);
  TuneCandidate candidate_;
  ReadyModel ready_;
  std::unique_ptr<Session> session_;
  bool has_state_ = false;
  bool writes_inputs_ = false;
  double call_seconds_ = 0;
};

/// The first line of an error, for a row.
std::string short_message(const std::exception& error);

}  // namespace halftone
