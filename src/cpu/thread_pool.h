// A ParallelFor on std::thread whose rounds do not wait for descheduled workers: a worker that does not run when
// a round begins is left out of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "cpu/parallel_for.h"

namespace halftone {

/// `threads` workers, the caller of run() among them. Indices are claimed one by one, so uneven tasks
/// balance. A round ends when its last task does; workers that have not come by then have missed it. (With a
/// barrier, as OpenMP has it, a busy neighbour on one core costs a time slice of the system at every round.)
/// run() may be called from any thread, one call at a time (a second caller waits); a task must not call
/// run() of its own pool. ThreadSanitizer can see its synchronisation, unlike libgomp's.
class ThreadPool final : public ParallelFor {
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
  bool try_enter(uint64_t& seen);
  void leave();
  void open_gate();
  void close_gate();
  bool wait_for_round(uint64_t& seen);

  static constexpr size_t kLine = 64;  // of a cache

  std::mutex run_mutex_;  // one run() at a time

  // The round, whether it is open, and how many workers are inside, in one word: a worker enters only a round
  // that is open, and the fields below change only while no thread is inside.
  alignas(kLine) std::atomic<uint64_t> gate_{0};
  const SplitTask* task_ = nullptr;
  int64_t count_ = 0;
  alignas(kLine) std::atomic<int64_t> next_{0};  // all threads write it while one may still look at the gate

  alignas(kLine) std::atomic<bool> stop_{false};
  std::atomic<int> sleepers_{0};
  std::atomic<int> wake_{0};  // workers sleep on it
  std::atomic<int> left_{0};  // the caller sleeps on it
  std::mutex error_mutex_;
  std::exception_ptr error_;

  std::vector<std::thread> workers_;
};

}  // namespace halftone
