#include "backend/lifecycle/state_gate.h"

namespace halftone::lifecycle {

thread_local const StateGate::InFlightGuard* StateGate::InFlightGuard::innermost = nullptr;

StateGate::InFlightGuard::InFlightGuard(StateGate& gate) : gate_(gate), outer_(innermost) {
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

StateGate::InFlightGuard::~InFlightGuard() {
  if (!entered_) return;
  innermost = outer_;
  gate_.leave();
}

bool StateGate::InFlightGuard::is_inside(const StateGate& gate) {
  for (const InFlightGuard* pass = innermost; pass != nullptr; pass = pass->outer_) {
    if (&pass->gate_ == &gate) return true;
  }
  return false;
}

}  // namespace halftone::lifecycle
