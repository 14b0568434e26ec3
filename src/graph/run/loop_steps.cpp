#include "graph/run/loop_steps.h"

#include <atomic>

#include "base/errors.h"
#include "halftone/graph/limits.h"

namespace halftone {
namespace {

std::atomic<int64_t> step_limit{kDefaultMaxSteps};

struct RunningLoops {
  int depth = 0;
  int64_t steps = 0;
};
thread_local RunningLoops running_loops;

}  // namespace

void set_max_steps(int64_t steps) {
  if (steps < 1) fail(ErrorCode::kInvalidArgument, "set_max_steps: {} steps; it takes 1 or more", steps);
  step_limit = steps;
}

int64_t max_steps() {
  return step_limit;
}

LoopSteps::LoopSteps() {
  if (running_loops.depth++ == 0) running_loops.steps = 0;
}

LoopSteps::~LoopSteps() {
  --running_loops.depth;
}

void LoopSteps::take() {
  if (++running_loops.steps <= step_limit) return;
  fail(ErrorCode::kUnsupported,
       "the loop took more than {} steps; a model that needs more runs with --max-steps, in C++ with "
       "set_max_steps() of halftone/graph/limits.h",
       step_limit.load());
}

}  // namespace halftone
