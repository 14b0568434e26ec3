// The gate that infer() goes through: the state and the number of running calls in one word, so that a call
// costs two additions to it and no lock.
//
// A change of state sets the new state first, and so turns later calls away; then it waits until those
// inside have left; then it may free what they used.
#pragma once

#include <atomic>
#include <cstdint>

#include "backend/lifecycle/table.h"

namespace halftone::lifecycle {

class StateGate {
 public:
  explicit StateGate(BackendState state) : word_(static_cast<uint64_t>(state)) {}

  BackendState state() const { return state_of(word_.load(std::memory_order_acquire)); }

  /// Only one thread at a time. What was written before it is there for calls that see the new state.
  void set_state(BackendState state) {
    const uint64_t old = word_.load(std::memory_order_relaxed) & kStateBits;
    // The difference of the state bits: calls may come and go meanwhile.
    word_.fetch_add(static_cast<uint64_t>(state) - old, std::memory_order_acq_rel);
  }

  /// Only one thread at a time, in a state in which calls are refused: they would keep coming.
  void wait_until_empty() {
    uint64_t word = word_.fetch_or(kWaiting, std::memory_order_acq_rel) | kWaiting;
    while (word >= kOne) {
      word_.wait(word, std::memory_order_acquire);
      word = word_.load(std::memory_order_acquire);
    }
    word_.fetch_and(~kWaiting, std::memory_order_relaxed);
  }

  /// A call that is inside, or was turned away.
  class InFlightGuard {
   public:
    explicit InFlightGuard(StateGate& gate);
    ~InFlightGuard();
    InFlightGuard(const InFlightGuard&) = delete;
    InFlightGuard& operator=(const InFlightGuard&) = delete;
    bool entered() const { return entered_; }
    BackendState seen() const { return seen_; }  ///< the state that decided

    /// Whether this thread is inside: a change of state would wait for itself.
    static bool is_inside(const StateGate& gate);

   private:
    static thread_local const InFlightGuard* innermost;
    StateGate& gate_;
    const InFlightGuard* outer_;
    BackendState seen_;
    bool entered_ = false;
  };

 private:
  static constexpr uint64_t kStateBits = 7;
  static constexpr uint64_t kWaiting = 8;
  static constexpr uint64_t kOne = 16;  ///< one call
  static_assert(kStates <= kStateBits);

  static BackendState state_of(uint64_t word) { return static_cast<BackendState>(word & kStateBits); }
  static bool lets_in(uint64_t word) { return (kInferStates >> (word & kStateBits) & 1) != 0; }
  void leave() {
    const uint64_t word = word_.fetch_sub(kOne, std::memory_order_acq_rel) - kOne;
    if (word < kOne && (word & kWaiting) != 0) word_.notify_all();
  }

  std::atomic<uint64_t> word_;
};

}  // namespace halftone::lifecycle
