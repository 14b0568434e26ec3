#include "backend/lifecycle/gate.h"

namespace halftone::lifecycle {

thread_local const Gate::Pass* Gate::Pass::innermost = nullptr;

Gate::Pass::Pass(Gate& gate) : gate_(gate), outer_(innermost) {
  // Looking first keeps refused calls from touching the counter: many of them could hold up a thread that
  // waits for it to become 0.
  uint64_t word = gate_.word_.load(std::memory_order_relaxed);
  if (lets_in(word)) {
    word = gate_.word_.fetch_add(kOne, std::memory_order_acq_rel);
    entered_ = lets_in(word);
    if (!entered_) gate_.leave();
  }
  seen_ = state_of(word);
  if (entered_) innermost = this;
}

Gate::Pass::~Pass() {
  if (!entered_) return;
  innermost = outer_;
  gate_.leave();
}

bool Gate::Pass::is_inside(const Gate& gate) {
  for (const Pass* pass = innermost; pass != nullptr; pass = pass->outer_) {
    if (&pass->gate_ == &gate) return true;
  }
  return false;
}

}  // namespace halftone::lifecycle
