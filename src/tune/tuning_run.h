// The measuring part of a tuning: builds, validates and times candidates; judges none of them.
#pragma once

#include <chrono>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tune/candidate_run.h"
#include "tune/samples/sample_layout.h"
#include "tune/trial.h"

namespace halftone {

struct TuningInput {
  std::shared_ptr<const GraphModule> graph;
  const SampleLayout& layout;
  std::vector<TuneCandidate> candidates;  ///< eager first, then fp32
  const Strategy& strategy;
  const TuneOptions& options;
  double min_cosine = 0;
  std::chrono::steady_clock::time_point start;
};

class TuningRun {
 public:
  explicit TuningRun(const TuningInput& input);
  /// Fills in the report's candidates, checks of ranges, and notes. What eager throws is thrown.
  void run(TuneReport& report);
  /// False if time ran out before every candidate was measured: nothing to keep.
  bool is_complete() const { return complete_; }
  /// What was built of this candidate and measured; nothing where it is not there any more. It cannot be
  /// measured again.
  std::optional<ReadyModel> take_ready(const std::string& name);

 private:
  double remaining() const;
  void progress(double done, std::string_view what) const;
  void ask_eager(TuneReport& report);
  void check_range_ends(TuneReport& report);
  std::string trial_failure(const CandidateRun& candidate);
  void try_to_build(CandidateRun& candidate);
  void time_all(const std::vector<CandidateRun*>& candidates, double done, double share);
  void time_shape(const std::vector<CandidateRun*>& candidates, size_t shape, double seconds,
                  const std::function<void(double)>& progress);
  void try_all();
  void try_one_by_one();
  bool is_wrong(const CandidateRun& candidate) const;

  TuningInput input_;
  std::list<CandidateRun> candidates_;
  std::vector<Sample> validation_;
  std::vector<std::vector<c10::IValue>> expected_;  ///< eager's answers to them
  std::unique_ptr<TrialRunner> trials_;
  bool complete_ = true;
  int rounds_ = 0;
  int disturbed_ = 0;
};

}  // namespace halftone
