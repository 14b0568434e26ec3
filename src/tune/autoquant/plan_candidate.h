// The whole model with a scheme for each group: built, validated, timed.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "halftone/tune/modules.h"
#include "tune/autoquant/planner.h"
#include "tune/candidate_run.h"

namespace halftone::aq {

/// Which scheme each group has; 0 is fp32.
using SchemeOfGroup = std::vector<size_t>;

struct PlanCandidate {
  std::string name;
  SchemeOfGroup schemes;
  double cosine = 0;  ///< the least, to fp32's answers on validation samples
  bool holds = false;
  std::string note;                   ///< why it could not be built; empty: it could
  std::shared_ptr<CandidateRun> run;  ///< nullptr if that is so, and after release
};

/// Builds candidates and remembers what became of them.
class Judge {
 public:
  Judge(const PlanInput& input, const std::vector<AutoquantScheme>& schemes);
  /// Built with the compiler and validated; the same schemes again give the same candidate.
  std::shared_ptr<PlanCandidate> judge(const std::string& name, const SchemeOfGroup& schemes);
  /// 1 - cosine of the model's result where one group alone has a scheme, on one validation sample, in the
  /// interpreter.
  double harm_alone(size_t group, size_t scheme);
  LayerwiseConfig overrides(const SchemeOfGroup& schemes) const;
  /// Frees all candidates but these.
  void keep_only(const std::vector<std::shared_ptr<PlanCandidate>>& kept);

 private:
  const PlanInput& input_;
  const std::vector<AutoquantScheme>& schemes_;
  std::vector<std::vector<c10::IValue>> expected_;
  std::list<std::shared_ptr<PlanCandidate>> candidates_;
};

}  // namespace halftone::aq
