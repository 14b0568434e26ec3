// Counting the steps of loops, so that a graph from a file cannot run endlessly.
#pragma once

#include <cstdint>

namespace halftone {

/// Lives as long as a loop runs. A loop inside another, in the same thread, takes from the outer one's steps.
class LoopSteps {
 public:
  LoopSteps();
  ~LoopSteps();
  LoopSteps(const LoopSteps&) = delete;
  LoopSteps& operator=(const LoopSteps&) = delete;
  /// Before each step. kUnsupported past max_steps() of halftone/graph/limits.h.
  void take();
};

}  // namespace halftone
