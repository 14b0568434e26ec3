#include "graph/aten/aten_parallel_for.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

namespace halftone {
namespace {

class ThreadCount {
 public:
  explicit ThreadCount(int threads) : before_(at::get_num_threads()) { at::set_num_threads(threads); }
  ~ThreadCount() { at::set_num_threads(before_); }

 private:
  int before_;
};

TEST(AtenParallelFor, RunsEveryIndexOnce) {
  const ThreadCount two(2);
  AtenParallelFor parallel_for;
  for (const int64_t count : {0, 1, 2, 3, 1000}) {
    std::vector<std::atomic<int>> runs(static_cast<size_t>(count));
    parallel_for.run(count, [&](int64_t i, int thread) {
      ASSERT_LT(thread, 2);  // in here the ParallelFor itself counts one: it is inside a parallel region
      runs[static_cast<size_t>(i)]++;
    });
    for (const auto& run : runs) EXPECT_EQ(run, 1);
  }
}

// Two tasks that wait for each other end only if two threads run them.
TEST(AtenParallelFor, TwoThreadsReallyRun) {
  const ThreadCount two(2);
  AtenParallelFor parallel_for;
  ASSERT_EQ(parallel_for.threads(), 2);
  std::atomic<int> arrived{0};
  std::mutex mutex;
  std::set<std::thread::id> threads;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  parallel_for.run(2, [&](int64_t, int) {
    {
      const std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
    }
    ++arrived;
    while (arrived < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  });
  EXPECT_EQ(threads.size(), 2u);
}

TEST(AtenParallelFor, IsSerialInsideAParallelRegion) {
  const ThreadCount two(2);
  std::atomic<int> most{0}, sum{0};
  at::parallel_for(0, 2, 1, [&](int64_t, int64_t) {
    AtenParallelFor parallel_for;
    if (parallel_for.threads() > most) most = parallel_for.threads();
    parallel_for.run(5, [&](int64_t i, int) { sum += static_cast<int>(i); });
  });
  EXPECT_EQ(most, 1);
  EXPECT_EQ(sum, 20);
}

TEST(AtenParallelFor, ThrowsWhatATaskThrows) {
  const ThreadCount two(2);
  AtenParallelFor parallel_for;
  EXPECT_THROW(parallel_for.run(8,
                                [](int64_t i, int) {
                                  if (i == 3) throw std::out_of_range("three");
                                }),
               std::out_of_range);
}

}  // namespace
}  // namespace halftone
