#include "cpu/thread_pool.h"

#include "base/errors.h"

namespace halftone {
namespace {

// Kernels follow each other within microseconds; a worker that slept in between would wake up later than
// that. About 50 us.
constexpr int kSpins = 5000;

// The gate is one word: how many workers are inside, whether it is open, and the number of the round. A
// worker enters by one compare-exchange, which fails if the round is over; so a round never waits for a
// worker that has not begun, and a late worker cannot touch a task that is gone.
// The parts of the gate.
constexpr uint64_t kInside = 0xffff;
constexpr uint64_t kOpen = 0x10000;
constexpr uint64_t kRound = 0x20000;
constexpr uint64_t round_of(uint64_t gate) {
  return gate / kRound;
}

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  if (threads < 1)
    fail(ErrorCode::kInvalidArgument, "a thread pool needs at least 1 thread, not {}", threads);
  workers_.reserve(static_cast<size_t>(threads) - 1);
  for (int t = 1; t < threads; ++t) workers_.emplace_back([this, t] { worker(t); });
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_release);
  wake_.fetch_add(1, std::memory_order_release);
  wake_.notify_all();
  for (std::thread& w : workers_) w.join();
}

void ThreadPool::run(int64_t count, SplitTask task) {
  if (count <= 0) return;
  if (count == 1 || workers_.empty()) {
    for (int64_t i = 0; i < count; ++i) task(i, 0);
    return;
  }
  const std::lock_guard one_run(run_mutex_);
  task_ = &task;
  count_ = count;
  error_ = nullptr;
  next_.store(0, std::memory_order_relaxed);
  open_gate();
  drain(0);
  close_gate();
  if (error_) std::rethrow_exception(error_);
}

void ThreadPool::open_gate() {
  const uint64_t round = round_of(gate_.load(std::memory_order_relaxed)) + 1;
  // Sequentially consistent, as is the sleepers' count: either the caller sees the sleeper, or the sleeper
  // sees the round.
  gate_.store(round * kRound | kOpen);
  if (sleepers_.load() == 0) return;
  wake_.fetch_add(1);
  wake_.notify_all();
}

void ThreadPool::close_gate() {
  gate_.fetch_and(~kOpen, std::memory_order_acq_rel);
  const auto empty = [this] { return (gate_.load(std::memory_order_acquire) & kInside) == 0; };
  for (int spin = 0; spin < kSpins; ++spin) {
    if (empty()) return;
    relax();
  }
  for (;;) {
    const int seen = left_.load(std::memory_order_acquire);
    if (empty()) return;
    left_.wait(seen, std::memory_order_acquire);
  }
}

bool ThreadPool::try_enter(uint64_t& seen) {
  uint64_t gate = gate_.load();
  while ((gate & kOpen) != 0 && round_of(gate) != seen) {
    if (gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acq_rel)) {
      seen = round_of(gate);
      return true;
    }
  }
  return false;
}

void ThreadPool::leave() {
  const uint64_t before = gate_.fetch_sub(1, std::memory_order_acq_rel);
  if ((before & kOpen) != 0 || (before & kInside) != 1) return;
  left_.fetch_add(1, std::memory_order_release);
  left_.notify_one();
}

void ThreadPool::drain(int thread) {
  for (;;) {
    // Relaxed is enough: what a task reads was published by the gate, and its results are by leave().
    const int64_t index = next_.fetch_add(1, std::memory_order_relaxed);
    if (index >= count_) return;
    try {
      (*task_)(index, thread);
    } catch (...) {
      const std::lock_guard lock(error_mutex_);
      if (!error_) error_ = std::current_exception();
      // The remaining tasks are skipped; those that run finish.
      next_.store(count_, std::memory_order_relaxed);
    }
  }
}

bool ThreadPool::wait_for_round(uint64_t& seen) {
  for (int spin = 0; spin < kSpins; ++spin) {
    if (stop_.load(std::memory_order_acquire)) return false;
    if (try_enter(seen)) return true;
    relax();
  }
  for (;;) {
    const int before = wake_.load(std::memory_order_acquire);
    // Counted before the last look at the gate: see open_gate().
    sleepers_.fetch_add(1);
    const bool entered = try_enter(seen);
    if (!entered && !stop_.load(std::memory_order_acquire)) wake_.wait(before);
    sleepers_.fetch_sub(1);
    if (entered) return true;
    if (stop_.load(std::memory_order_acquire)) return false;
    if (try_enter(seen)) return true;
  }
}

void ThreadPool::worker(int thread) {
  uint64_t seen = 0;
  while (wait_for_round(seen)) {
    drain(thread);
    leave();
  }
}

}  // namespace halftone
