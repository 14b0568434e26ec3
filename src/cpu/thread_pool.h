// A Splitter on std::thread, whose synchronisation ThreadSanitizer can see (it cannot see libgomp's).
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "cpu/splitter.h"

namespace halftone {

/// `threads` workers, the caller of run() among them. Indices are claimed one by one, so uneven tasks
/// balance. run() may be called from any thread, one call at a time (a second caller waits); a task must not
/// call run() of its own pool.
class ThreadPool final : public Splitter {
 public:
  /// Throws kInvalidArgument unless threads >= 1.
  explicit ThreadPool(int threads);
  ~ThreadPool() override;
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const override { return static_cast<int>(workers_.size()) + 1; }
  void run(int64_t count, SplitTask task) override;

 private:
  void worker(int thread);
  void drain(int thread);
  bool wait_for_round(uint64_t seen);

  std::mutex run_mutex_;  // one run() at a time

  // A round is published by round_ (release) after the fields below were written, and over when pending_ is
  // 0.
  const SplitTask* task_ = nullptr;
  int64_t count_ = 0;
  std::atomic<int64_t> next_{0};
  std::atomic<int> pending_{0};
  std::atomic<uint64_t> round_{0};
  std::atomic<bool> stop_{false};

  std::mutex mutex_;  // guards error_ and the sleeping of workers and caller
  std::condition_variable start_;
  std::condition_variable done_;
  std::exception_ptr error_;

  std::vector<std::thread> workers_;
};

}  // namespace halftone
