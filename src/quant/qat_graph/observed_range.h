// An observer of a graph in training, as a tensor of five floats: state that files can hold.
#pragma once

#include "halftone/ptq/observer.h"

namespace halftone {

/// kObservedOn: 1 in training. kObservedFrozen: 1 for good.
enum ObservedRange : int64_t {
  kObservedMin,
  kObservedMax,
  kObservedCalls,
  kObservedOn,
  kObservedFrozen,
  kObservedRangeSize
};

/// Makes sure that the linker keeps the operators.
void link_observed_ops();

}  // namespace halftone
