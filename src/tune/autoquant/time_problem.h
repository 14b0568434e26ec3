// The time that a problem takes with each scheme, in the conditions of the whole model.
//
// A layer measured over and over by itself finds its weights in the nearest cache. In the model it does not:
// between two of its calls the weights of all other layers pass through the caches, as many bytes as the
// scheme makes of them. So before each timed run that many bytes of other memory are read (at most twice the
// last-level cache: more changes nothing), by the threads that run the model, which keeps them awake, and
// then the problem's inputs, which the layer before has just written. A model that fits the caches is
// measured in the caches, and a scheme that makes it fit has the gain.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "halftone/tune/autoquant_plan.h"
#include "tune/autoquant/problem.h"

namespace halftone::aq {

struct SchemeTime {
  std::string scheme;
  std::optional<double> milliseconds;
  std::string note;  ///< why there is none
};

/// Candidates take turns (measure.h). `weights_beside`: of the model's other layers. Never throws for what a
/// scheme does: that is a note. MachineBusy where other programs do not let it measure.
std::vector<SchemeTime> time_problem(const Problem& problem, const std::vector<AutoquantScheme>& schemes,
                                     int64_t weights_beside, double seconds);

}  // namespace halftone::aq
