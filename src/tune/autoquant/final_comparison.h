// Whole models side by side: what decides.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tune/autoquant/plan_candidate.h"

namespace halftone::aq {

struct FinalComparison {
  std::vector<AutoquantRun> runs;     ///< one for each candidate, in their order
  std::vector<std::string> why_lost;  ///< for each as well: why fp32 is kept instead; empty: it is not
  size_t winner = 0;
};

/// `candidates`: fp32 first; all built. Each shape is measured in turns; the times add up by how often a shape
/// is seen. The fastest wins, but fp32 if nothing gains 1 % and 5 µs over it beyond doubt: a call that
/// takes microseconds is not worth a loss of accuracy. `layer_gain_ms`: what each candidate's layers won over
/// fp32's by themselves. If that is less than half of 5 µs, a faster whole is the machine's noise.
FinalComparison final_comparison(const PlanInput& input,
                                 const std::vector<std::shared_ptr<PlanCandidate>>& candidates,
                                 const std::vector<double>& layer_gain_ms, double seconds,
                                 const std::function<void(double share)>& progress);

}  // namespace halftone::aq
