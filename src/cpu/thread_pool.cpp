#include "cpu/thread_pool.h"

#include "base/errors.h"

namespace halftone {
namespace {

// Kernels follow each other within microseconds; a worker that slept in between would wake up later than
// that. About 20 us.
constexpr int kSpins = 2000;

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
  {
    std::lock_guard lock(mutex_);
    stop_.store(true, std::memory_order_release);
  }
  start_.notify_all();
  for (std::thread& w : workers_) w.join();
}

void ThreadPool::run(int64_t count, SplitTask task) {
  if (count <= 0) return;
  std::lock_guard one_run(run_mutex_);
  if (count == 1 || workers_.empty()) {
    for (int64_t i = 0; i < count; ++i) task(i, 0);
    return;
  }
  task_ = &task;
  count_ = count;
  error_ = nullptr;
  next_.store(0, std::memory_order_relaxed);
  pending_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  {
    std::lock_guard lock(mutex_);
    round_.fetch_add(1, std::memory_order_release);
  }
  start_.notify_all();
  drain(0);
  for (int spin = 0; spin < kSpins && pending_.load(std::memory_order_acquire) != 0; ++spin) relax();
  if (pending_.load(std::memory_order_acquire) != 0) {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return pending_.load(std::memory_order_acquire) == 0; });
  }
  if (error_) std::rethrow_exception(error_);
}

void ThreadPool::drain(int thread) {
  for (;;) {
    const int64_t index = next_.fetch_add(1, std::memory_order_relaxed);
    if (index >= count_) return;
    try {
      (*task_)(index, thread);
    } catch (...) {
      std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
      next_.store(count_, std::memory_order_relaxed);
    }
  }
}

bool ThreadPool::wait_for_round(uint64_t seen) {
  const auto ready = [&] {
    return stop_.load(std::memory_order_acquire) || round_.load(std::memory_order_acquire) != seen;
  };
  for (int spin = 0; spin < kSpins; ++spin) {
    if (ready()) return !stop_.load(std::memory_order_acquire);
    relax();
  }
  std::unique_lock lock(mutex_);
  start_.wait(lock, ready);
  return !stop_.load(std::memory_order_acquire);
}

void ThreadPool::worker(int thread) {
  uint64_t seen = 0;
  while (wait_for_round(seen)) {
    ++seen;
    drain(thread);
    if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      std::lock_guard lock(mutex_);  // so that the caller is either still testing pending_ or already waiting
      done_.notify_one();
    }
  }
}

}  // namespace halftone
