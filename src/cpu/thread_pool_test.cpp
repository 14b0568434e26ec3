#include "cpu/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "halftone/base/error.h"

namespace halftone {
namespace {

TEST(SerialFor, RunsEachIndexOnceInTheCaller) {
  SerialFor serial;
  std::vector<int> calls(7, 0);
  const auto caller = std::this_thread::get_id();
  serial.run(7, [&](int64_t i, int thread) {
    EXPECT_EQ(thread, 0);
    EXPECT_EQ(std::this_thread::get_id(), caller);
    ++calls[static_cast<size_t>(i)];
  });
  EXPECT_EQ(calls, std::vector<int>(7, 1));
}

TEST(ThreadPool, RunsEachIndexOnceForManyRounds) {
  ThreadPool pool(3);
  for (int64_t count : {0, 1, 2, 3, 100}) {
    for (int round = 0; round < 200; ++round) {
      std::vector<int> calls(static_cast<size_t>(count),
                             0);  // not atomic: a double run would be a race that TSan reports
      pool.run(count, [&](int64_t i, int thread) {
        EXPECT_GE(thread, 0);
        EXPECT_LT(thread, 3);
        ++calls[static_cast<size_t>(i)];
      });
      ASSERT_EQ(calls, std::vector<int>(static_cast<size_t>(count), 1));
    }
  }
}

// Two tasks that each wait for the other can only end if two threads run at the same time.
TEST(ThreadPool, TwoThreadsReallyRun) {
  ThreadPool pool(2);
  std::atomic<int> arrived{0};
  std::atomic<bool> met{true};
  std::thread::id ids[2];
  int threads[2] = {-1, -1};
  pool.run(2, [&](int64_t i, int thread) {
    ids[i] = std::this_thread::get_id();
    threads[i] = thread;
    ++arrived;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (arrived.load() < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    if (arrived.load() < 2) met = false;
  });
  EXPECT_TRUE(met.load());
  EXPECT_NE(ids[0], ids[1]);
  EXPECT_EQ((std::set<int>{threads[0], threads[1]}), (std::set<int>{0, 1}));
}

// A barrier would wait for a worker that sleeps; the caller is done long before that one wakes up.
TEST(ThreadPool, NobodyWaitsForAWorkerThatDidNotCome) {
  ThreadPool pool(2);
  std::thread::id first[2];
  int missed = 0;
  for (int round = 0; round < 100; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // the worker has gone to sleep
    pool.run(2, [&](int64_t i, int) { first[i] = std::this_thread::get_id(); });
    missed += first[0] == first[1];
  }
  EXPECT_GT(missed, 0);  // two tasks of nothing: over before anyone can come
}

TEST(ThreadPool, SleepingWorkersWakeUp) {
  ThreadPool pool(2);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::atomic<int> calls{0};
    pool.run(10, [&](int64_t, int) { ++calls; });
    EXPECT_EQ(calls.load(), 10);
  }
}

TEST(ThreadPool, ThrowsTheTasksExceptionAndGoesOn) {
  ThreadPool pool(2);
  EXPECT_THROW(pool.run(50,
                        [&](int64_t i, int) {
                          if (i == 3) throw std::runtime_error("three");
                        }),
               std::runtime_error);
  std::atomic<int> calls{0};
  pool.run(4, [&](int64_t, int) { ++calls; });
  EXPECT_EQ(calls.load(), 4);
}

TEST(ThreadPool, CallersTakeTurns) {
  ThreadPool pool(2);
  std::atomic<int> calls{0};
  const auto caller = [&] {
    for (int round = 0; round < 100; ++round) pool.run(5, [&](int64_t, int) { ++calls; });
  };
  std::thread other(caller);
  caller();
  other.join();
  EXPECT_EQ(calls.load(), 1000);
}

TEST(ThreadPool, RefusesNoThreads) {
  EXPECT_THROW(ThreadPool(0), Error);
}

}  // namespace
}  // namespace halftone
